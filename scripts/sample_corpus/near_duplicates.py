"""BLEU on a test set by how much of each source sentence occurs in a single training sentence.

  python -m scripts.sample_corpus.near_duplicates --source data/envi/news_test.en --reference data/envi/news_test.vi \\
    --hypotheses RUN/evaluation/test/hypotheses.txt data/envi/news.en data/envi/basic.en

The filters remove exact duplicates; this shows the effect of near duplicates. The overlap of a source sentence is the
share of its 4-grams (lower-cased, split at spaces) that one training sentence contains, maximized over the training
sentences; it is 0 for sentences of fewer than four words. Give the source side of the training corpora.
"""

import argparse
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import chain, pairwise
from pathlib import Path

from sacrebleu.metrics.bleu import BLEU

from nmt.evaluation.scores import check_lines
from nmt.tables import Table
from nmt.text.lines import iter_lines, read_lines
from scripts.mistakes import report_mistakes

WORDS = 4
BOUNDS = (0.0, 0.25, 0.5, 1.0)


def ngrams(line: str) -> set[tuple[str, ...]]:
    """The distinct 4-grams of a line."""
    words = line.lower().split()
    return {tuple(words[start : start + WORDS]) for start in range(len(words) - WORDS + 1)}


def overlaps(sources: Sequence[str], training: Iterable[str]) -> list[float]:
    """The overlap of each source sentence, from 0 to 1."""
    wanted = [ngrams(line) for line in sources]
    having = defaultdict(list)
    for index, found in enumerate(wanted):
        for sequence in found:
            having[sequence].append(index)
    largest = [0.0] * len(sources)
    for line in training:
        shared = Counter(index for sequence in ngrams(line) for index in having.get(sequence, ()))
        for index, count in shared.items():
            largest[index] = max(largest[index], count / len(wanted[index]))
    return largest


def rows(shares: Sequence[float], hypotheses: Sequence[str], references: Sequence[str]) -> list[list[str]]:
    """Lines and BLEU for each range of overlap. Only the last range includes its upper bound."""
    made = []
    for low, high in pairwise(BOUNDS):
        chosen = [i for i, share in enumerate(shares) if low <= share < high or share == high == BOUNDS[-1]]
        parts = [[lines[i] for i in chosen] for lines in (hypotheses, references)]
        bleu = f"{BLEU().corpus_score(parts[0], parts[1:]).score:.2f}" if chosen else ""
        made.append([f"{low:.0%} to {high:.0%}", f"{len(chosen):,}", bleu])
    return made


def signature() -> str:
    """The signature of BLEU, computed without a bootstrap."""
    metric = BLEU()
    metric.corpus_score([""], [[""]])
    return str(metric.get_signature())


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("source", "reference", "hypotheses"):
        parser.add_argument(f"--{name}", type=Path, required=True, metavar="FILE")
    parser.add_argument("training", type=Path, nargs="+", metavar="FILE", help="source side of a training corpus")
    options = parser.parse_args(arguments)
    sources, references, hypotheses = map(read_lines, (options.source, options.reference, options.hypotheses))
    check_lines(hypotheses, [references])
    check_lines(hypotheses, [sources], "sources")
    found = overlaps(sources, chain.from_iterable(map(iter_lines, options.training)))
    table = Table(["overlap with one training sentence", "lines", "BLEU"], rows(found, hypotheses, references))
    print(table.markdown())
    print(f"\nBLEU {signature()}")


if __name__ == "__main__":
    report_mistakes(main, sys.argv[1:])
