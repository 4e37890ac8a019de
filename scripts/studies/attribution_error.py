"""Alignment error rates of attention and of each attribution method, for several runs, as a Markdown table.

Links are those of the row, layer and head with the lowest rate on the validation split; an attribution has one layer
and head. Integrated gradients take seconds per sentence; --sentences limits both splits to their first sentences.

  python -m scripts.studies.attribution_error runs/luong runs/transformer --sentences 50
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from nmt.data.corpus import Pairs
from nmt.errors import Mistake
from nmt.insight.attribution_maps import ATTENTION, METHODS, map_maker
from nmt.runs.load import LoadedRun, load_run
from nmt.scoring.alignment_error import AlignmentQuality, Gold, alignment_quality, cross_maps
from nmt.scoring.test_sets import split_test_set
from nmt.tables import Cell, Table
from scripts.mistakes import report_mistakes


def first(gold: Gold | None, sentences: int | None) -> Gold | None:
    """The first `sentences` sentence pairs with their alignments; all if `sentences` is None."""
    if gold is None:
        return None
    return Gold(Pairs(*(side[:sentences] for side in gold.pairs)), gold.alignments[:sentences])


def measured(run: LoadedRun, split: str, method: str, sentences: int | None) -> AlignmentQuality:
    """The rates of attention, or of an attribution. Raises Mistake if the split has no gold alignments."""
    test_set = split_test_set(run, split)
    gold, valid = first(test_set.gold, sentences), first(test_set.valid_gold, sentences)
    if gold is None:
        raise Mistake(f"Split '{split}' of {run.directory.path} has no gold alignments; choose a split that has them.")
    return alignment_quality(*cross_maps(run, gold, valid, 4096, map_maker(run, method)))


def of_runs(runs: Sequence[Path], methods: Sequence[str], split: str, sentences: int | None) -> Table:
    """One row per run and method."""
    rows: list[list[Cell]] = []
    for run_dir in runs:
        run = load_run(run_dir, "cpu")
        for method in methods:
            quality = measured(run, split, method, sentences)
            choice = ["mean" if part is None else str(part) for part in quality.choice]
            rates = [f"{rate:.3f}" for rate in (*quality.rates, quality.diagonal.aer)]
            rows.append([str(run_dir), method, *choice, *rates])
    header = ["run", "method", "row", "layer", "head", "AER", "precision", "recall", "AER of the diagonal"]
    return Table(header, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, nargs="+", help="finished runs")
    parser.add_argument("--methods", nargs="+", choices=[ATTENTION, *METHODS], default=[ATTENTION, *METHODS])
    parser.add_argument("--split", default="test")
    parser.add_argument(
        "--sentences", type=int, help="number of sentences, from the first of each split (default: all)"
    )
    arguments = parser.parse_args()
    print(of_runs(arguments.runs, arguments.methods, arguments.split, arguments.sentences).markdown())


if __name__ == "__main__":
    report_mistakes(main)
