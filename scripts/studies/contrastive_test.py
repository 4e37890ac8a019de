"""How often a run prefers the right translation of a document's last sentence to one that fits a different context.

PREFIX.doc has pairs of documents, NAMEa and NAMEb. Their last source sentences are equal, but the last translations
differ: the right one in the first document is wrong in the second, and vice versa. A run is correct if it gives the
right translation a higher log-probability after its document. The difference depends on a word in an earlier sentence,
and PREFIX.antecedent says for each document how many sentences before the last one that is. The table also has the
weight of that sentence at the site decoder_sentences when the first differing piece is predicted, as a mean over heads
and documents, and the weight that it would have if all weights were equal.

  python -m scripts.studies.contrastive_test runs/none runs/both
"""

import argparse
from collections import defaultdict
from collections.abc import Sequence
from itertools import groupby, takewhile
from pathlib import Path
from typing import NamedTuple

import numpy as np

from nmt.config.direction import Direction
from nmt.data.corpus import corpus_files, read_pairs
from nmt.data.documents import check_documents, document_file
from nmt.data.example import TokenizedPair
from nmt.errors import Mistake
from nmt.insight.forced_maps import IdPair, forced_maps
from nmt.runs.load import LoadedRun, load_run
from nmt.scoring.forced_scores import log_probs
from nmt.tables import Cell, Table
from nmt.text.lines import read_lines
from scripts.intervals import wilson
from scripts.mistakes import report_mistakes

CORPUS = "sample:documents_contrast"


class Case(NamedTuple):
    """A document whose last sentence has a right and a wrong translation."""

    sources: list[str]
    targets: list[str]
    """The last one is right."""
    wrong: str
    distance: int
    """How many sentences before the last one the antecedent is."""


def read_cases(prefix: str, direction: Direction) -> list[Case]:
    """The documents of a contrastive corpus. Raises Mistake if they do not come in pairs with equal last sources."""
    if not check_documents(prefix, direction):
        raise Mistake(f"{prefix} has no PREFIX.doc, so it has no documents to test; choose a contrastive corpus.")
    path = document_file(prefix, direction)
    assert path is not None  # checked above
    pairs = list(zip(*read_pairs(prefix, direction), strict=True))
    documents = [
        [pair for _, pair in group]
        for _, group in groupby(zip(read_lines(path), pairs, strict=True), lambda one: one[0])
    ]
    distances = [int(line) for line in read_lines(corpus_files(prefix, direction)[0].with_suffix(".antecedent"))]
    if len(documents) % 2 or len(distances) != len(documents):
        raise Mistake(
            f"{prefix} has {len(documents)} documents and {len(distances)} antecedents; it must have "
            "pairs of documents, and one antecedent for each document."
        )
    cases = []
    for number, (document, distance) in enumerate(zip(documents, distances, strict=True)):
        other = documents[number ^ 1]
        if document[-1][0] != other[-1][0] or document[-1][1] == other[-1][1]:
            raise Mistake(
                f"Documents {number // 2 * 2 + 1} and {number // 2 * 2 + 2} of {prefix} are not a pair: their last "
                "sources must be equal, and their last translations different."
            )
        sources, targets = (list(side) for side in zip(*document, strict=True))
        cases.append(Case(sources, targets, other[-1][1], distance))
    return cases


def is_right(run: LoadedRun, cases: Sequence[Case], in_context: bool) -> list[bool]:
    """Whether the run prefers the right translation in each document, after the document or without it."""
    lines = [(number, source) for number, case in enumerate(cases) for source in case.sources]
    documents = [number for number, _ in lines] if in_context else None
    ends = np.cumsum([len(case.sources) for case in cases]) - 1
    sources = [source for _, source in lines]
    targets = [target for case in cases for target in case.targets]
    with_wrong = [target for case in cases for target in (*case.targets[:-1], case.wrong)]
    right, wrong = (log_probs([run], sources, side, documents=documents) for side in (targets, with_wrong))
    return [right[end] > wrong[end] for end in ends]


def antecedent_weights(run: LoadedRun, cases: Sequence[Case]) -> list[tuple[float, float]] | None:
    """The weight of the antecedent's sentence in each document, and its equal weight; None without such a site."""
    if "decoder_sentences" not in run.model.sites:
        return None
    source, target = (tokenizer.encode for tokenizer in run.tokenizers)
    pairs, rows, places = [], [], []
    for case in cases:
        ids: list[TokenizedPair] = [
            (source(ours), target(theirs)) for ours, theirs in zip(case.sources, case.targets, strict=True)
        ]
        earlier = ids[:-1][-run.context_window.sentences :]
        if case.distance > len(earlier):
            continue
        alike = takewhile(lambda both: both[0] == both[1], zip(ids[-1][1], target(case.wrong), strict=False))
        rows.append(sum(1 for _ in alike))
        places.append(len(earlier) - case.distance)
        pairs.append(IdPair(len(pairs) + 1, 1, *ids[-1], None, earlier))
    weights = {sentence.line: sentence.site("decoder_sentences").weights for sentence in forced_maps(run, pairs, 4096)}
    return [
        (float(weights[line][0, :, row, place].mean()), 1 / weights[line].shape[-1])
        for line, (row, place) in enumerate(zip(rows, places, strict=True), start=1)
    ]


def of_runs(runs: Sequence[Path], prefix: str) -> Table:
    """One row per run."""
    rows: list[list[Cell]] = []
    for run_dir in runs:
        run = load_run(run_dir, "cpu")
        cases = read_cases(prefix, run.direction)
        is_correct = is_right(run, cases, in_context=run.context_window.sentences > 0)
        low, high = wilson(sum(is_correct), len(is_correct))
        groups: dict[int, list[bool]] = defaultdict(list)
        for case, right in zip(cases, is_correct, strict=True):
            groups[case.distance].append(right)
        by_distance = [f"{100 * np.mean(of_distance):.1f}" for _, of_distance in sorted(groups.items())]
        weights = antecedent_weights(run, cases)
        seen = ["", ""] if weights is None else [f"{value:.2f}" for value in np.mean(weights, axis=0)]
        accuracy = f"{100 * sum(is_correct) / len(is_correct):.1f} [{100 * low:.1f}, {100 * high:.1f}]"
        rows.append([str(run_dir), accuracy, ", ".join(by_distance), *seen])
    return Table(["run", "accuracy in %", "by distance", "antecedent's weight", "equal weights"], rows)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, nargs="+", help="finished runs")
    parser.add_argument("--corpus", default=CORPUS, help=f"PREFIX of the documents (default {CORPUS})")
    options = parser.parse_args(arguments)
    print(of_runs(options.runs, options.corpus).markdown())


if __name__ == "__main__":
    report_mistakes(main)
