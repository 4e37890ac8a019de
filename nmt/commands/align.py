"""nmt.align: how well the links that attention shows agree with a human alignment, map by map."""

from collections.abc import Mapping
from pathlib import Path

from nmt.config.job import Job
from nmt.config.messages import check_share
from nmt.files import check_writable, folder_to_write
from nmt.maps.links import Choice, Rates
from nmt.runs.alignment_error import Links, both_maps, chosen_links, gold_file, rates_by_way
from nmt.runs.load import Trained, load_run
from nmt.runs.test_sets import check_files_given, chosen_test_set, splits
from nmt.tables import Table

_RATES = ["AER", "precision", "recall"]
_HEADER = ["row", "layer", "head", "AER valid", *_RATES]


def align(job: Job) -> None:
    """Prints and saves the rates of the argmax links of every row, layer and head of the cross attention.

    The best on the validation split come first; where that has no alignments, the best on the sentences themselves.
    Of the map that is chosen the other kinds of links follow. Raises ValueError where there are no gold alignments.
    """
    config = job.config
    check_files_given(config["source"], config["reference"], config["alignment"])
    check_share("threshold", config["threshold"])
    trained = load_run(Path(str(config["run_dir"])), config["device"])
    test_set = chosen_test_set(
        trained, str(config["split"]), config["source"], config["reference"], config["alignment"], config["out"]
    )
    if test_set.gold is None:
        raise ValueError(
            f"There is no gold alignment of {config['source'] or 'split ' + str(config['split'])}; "
            f"{_with_alignments(trained)} Give alignment=FILE with files of your own, or put it beside the split as "
            "PREFIX.SOURCE-TARGET.align."
        )
    check_writable("out", test_set.out)
    maps, valid = both_maps(trained, test_set.gold, test_set.valid_gold, config["batch_tokens"])
    found = chosen_links(maps, valid)
    out = folder_to_write("out", test_set.out)
    ways = rates_by_way(maps, found.choice, float(config["threshold"]))
    tables = {"alignment": _table(found), "alignment_links": _ways(ways, found.diagonal)}
    for name, table in tables.items():
        (out / f"{name}.csv").write_text(table.csv(), encoding="utf-8")
    print(tables["alignment"].markdown())
    print(f"Of the choice: AER {found.rates.aer:.3f} {found.note}")
    print(tables["alignment_links"].markdown())
    for name in tables:
        print(out / f"{name}.csv")


def _table(found: Links) -> Table:
    by_valid = found.valid_table or found.table
    choices = sorted(found.table, key=lambda choice: by_valid[choice].aer)
    rows = [[*_place(choice), _valid(found, choice), *_cells(found.table[choice])] for choice in choices]
    return Table(_HEADER, [*rows, ["", "diagonal", "", "", *_cells(found.diagonal)]])


def _ways(ways: Mapping[str, Rates | None], diagonal: Rates) -> Table:
    """The links of the chosen map; those of the diagonal below."""
    rows = [[name, *(_cells(rates) if rates else [""] * len(_RATES))] for name, rates in ways.items()]
    return Table(["links", *_RATES], [*rows, ["diagonal", *_cells(diagonal)]])


def _with_alignments(trained: Trained) -> str:
    """Which splits of the run's data have gold alignments."""
    there = [name for name, prefix in splits(trained).items() if gold_file(trained, prefix)]
    return f"splits that have one: {', '.join(there)}." if there else "no split of the run's data has one."


def _place(choice: Choice) -> list[str]:
    return [choice.row, *("mean" if part is None else str(part) for part in (choice.layer, choice.head))]


def _valid(found: Links, choice: Choice) -> str:
    return f"{found.valid_table[choice].aer:.3f}" if found.valid_table else ""


def _cells(rates: Rates) -> list[str]:
    return [f"{rate:.3f}" for rate in rates]
