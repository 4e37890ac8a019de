"""nmt.align: how well the links read from attention agree with gold alignments, map by map."""

from pathlib import Path

from nmt.commands.align_settings import AlignSettings
from nmt.config.job import Job
from nmt.errors import Mistake
from nmt.files import write_text
from nmt.insight.attribution_maps import ATTENTION, map_maker
from nmt.maps.links import Rates
from nmt.paths import folder_to_write
from nmt.runs.load import load_run
from nmt.scoring.alignment_error import alignment_quality, cross_maps, gold_file, rates_by_way
from nmt.scoring.test_sets import chosen_test_set
from nmt.tables import Cell, Table

_RATES = ["AER", "precision", "recall"]


def align(job: Job[AlignSettings]) -> None:
    """Prints and saves AER, precision and recall of the argmax links, for each row, layer and head of cross attention.

    An attribution method has only one layer and head, and its files are named after the method. Maps are sorted by
    their AER on the validation split, or on the measured sentences if the validation split has no alignments. A second
    table compares the ways of reading links from the chosen map. Raises Mistake if there are no gold alignments.
    """
    settings = job.settings
    run = load_run(Path(settings.run_dir), settings.device)
    test_set = chosen_test_set(
        run,
        split=settings.split,
        source=settings.source,
        reference=settings.reference,
        alignment=settings.alignment,
        out=settings.out,
    )
    if test_set.gold is None:
        aligned = [name for name, prefix in run.settings.data.held_out.items() if gold_file(run, prefix)]
        remedy = f"Splits that have them: {', '.join(aligned)}." if aligned else "No split of the run's data has them."
        raise Mistake(
            f"There are no gold alignments for {settings.source or f'split {settings.split}'}. {remedy} Use "
            "alignment=FILE with files of your own, or put the alignments beside the split as "
            "PREFIX.SOURCE-TARGET.align."
        )
    make_maps = map_maker(run, settings.method)
    maps, valid = cross_maps(run, test_set.gold, test_set.valid_gold, settings.batch_tokens, make_maps)
    quality = alignment_quality(maps, valid)
    by_valid = quality.valid_table or quality.table
    diagonal = _cells(quality.diagonal)
    map_rows: list[list[Cell]] = []
    for selector in sorted(quality.table, key=lambda selector: by_valid[selector].aer):
        layer, head = ("mean" if part is None else str(part) for part in (selector.layer, selector.head))
        valid_aer = f"{quality.valid_table[selector].aer:.3f}" if quality.valid_table else ""
        map_rows.append([selector.row, layer, head, valid_aer, *_cells(quality.table[selector])])
    maps_table = Table(["row", "layer", "head", "AER valid", *_RATES], [*map_rows, ["diagonal", "", "", "", *diagonal]])
    ways = rates_by_way(maps, quality.choice, settings.threshold)
    way_rows = [[way, *(_cells(rates) if rates else [""] * len(_RATES))] for way, rates in ways.items()]
    links_table = Table(["links", *_RATES], [*way_rows, ["diagonal", *diagonal]])
    print(maps_table.markdown())
    print(f"Chosen map: AER {quality.rates.aer:.3f} {quality.note}")
    print(links_table.markdown())
    out = folder_to_write("out", test_set.out)
    for name, table in {"alignment": maps_table, "alignment_links": links_table}.items():
        file = out / (f"{name}.csv" if settings.method == ATTENTION else f"{name}_{settings.method}.csv")
        write_text(file, table.csv())
        print(file)


def _cells(rates: Rates) -> list[Cell]:
    return [f"{rate:.3f}" for rate in rates]
