"""Alignment error rates of several runs on a split with gold alignments, as Markdown tables.

The first table has one row per run, with the map (row, layer, head) that has the lowest rate on the validation split.
For each run in --all, tables with the rates of every map follow.

  python -m scripts.studies.alignment_tables runs/luong runs/transformer --all runs/transformer
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

from nmt.errors import Mistake
from nmt.maps.links import MapSelector
from nmt.maps.words import PIECE_ROWS
from nmt.runs.load import LoadedRun, load_run
from nmt.scoring.alignment_error import AlignmentQuality, alignment_error
from nmt.scoring.test_sets import split_test_set
from nmt.tables import Table
from scripts.mistakes import report_mistakes

MeasuredRun = tuple[Path, LoadedRun, AlignmentQuality]


def measured(run_dir: Path, split: str) -> MeasuredRun:
    """The rates of a run. Raises Mistake if the split has no gold alignments."""
    run = load_run(run_dir, "cpu")
    test_set = split_test_set(run, split)
    if test_set.gold is None:
        raise Mistake(f"Split '{split}' of {run_dir} has no gold alignments; choose a split that has them.")
    return run_dir, run, alignment_error(run, test_set.gold, test_set.valid_gold, batch_tokens=4096)


def of_runs(runs: list[MeasuredRun]) -> Table:
    """One row per run: the map chosen on the validation split, and its rates."""
    header = ["run", "model", "scorer", "window", "row", "layer", "head", "AER valid", "AER", "precision", "recall"]
    header += ["AER of the diagonal"]
    rows = []
    for run_dir, run, quality in runs:
        attention = run.model.sites["cross"][0]
        parts = [type(part).__name__ for part in (run.model, attention.scorer, attention.window)]
        choice = ["mean" if part is None else str(part) for part in quality.choice]
        valid = f"{quality.valid_table[quality.choice].aer:.3f}" if quality.valid_table else ""
        rates = [f"{rate:.3f}" for rate in (*quality.rates, quality.diagonal.aer)]
        rows.append([str(run_dir), *parts, *choice, valid, *rates])
    return Table(header, rows)


def of_maps(quality: AlignmentQuality) -> Iterator[Table]:
    """AER of every map: a table of layers by heads, means first, for each labeling of rows (predicts, reads)."""
    layers, heads = (
        list(dict.fromkeys(places)) for places in zip(*(choice[1:] for choice in quality.table), strict=True)
    )
    names = ["mean of layers" if layer is None else f"layer {layer}" for layer in layers]
    for piece_row in PIECE_ROWS:
        rates = [[quality.table.get(MapSelector(piece_row, layer, head)) for head in heads] for layer in layers]
        rows = [
            [name, *(f"{rate.aer:.3f}" if rate else "" for rate in row)] for name, row in zip(names, rates, strict=True)
        ]
        columns = ["mean of heads" if head is None else f"head {head}" for head in heads]
        yield Table([f"row that {piece_row}", *columns], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, nargs="+", help="finished runs")
    parser.add_argument("--split", default="test")
    parser.add_argument("--all", type=Path, nargs="*", default=[], help="runs whose maps are all tabulated")
    arguments = parser.parse_args()
    runs = [measured(run, arguments.split) for run in arguments.runs]
    print(of_runs(runs).markdown())
    for run in arguments.all:
        quality = next((row[2] for row in runs if row[0] == run), None) or measured(run, arguments.split)[2]
        for table in of_maps(quality):
            print(f"\n{run}\n\n{table.markdown()}")


if __name__ == "__main__":
    report_mistakes(main)
