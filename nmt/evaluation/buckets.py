"""Scores of sentences grouped by the length of the source or by its rarest word."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from sacrebleu.metrics.base import Metric

from nmt.evaluation.score_record import Score
from nmt.evaluation.scores import References, check_lines, corpus_scores

LENGTHS = (10, 20, 30, 40, 50)
"""Upper limit of each bucket in source words, separated by spaces; one more bucket holds the longer sources."""
COUNTS = (0, 1, 4, 9, 99)
"""Upper limit of each bucket in training occurrences of the source's rarest word; one more holds the higher counts."""


class Bucket(NamedTuple):
    """The score of the sentences with `least` to `most` words, or with that many occurrences of their rarest word.

    `most` is None if there is no upper limit.
    """

    least: int
    most: int | None
    sentences: int
    score: Score


def by_length(
    hypotheses: Sequence[str], references: References, sources: Sequence[str], metric: Mapping[str, Metric]
) -> list[Bucket]:
    """The score by number of source words. Raises Mistake if the numbers of lines differ or there are no lines."""
    check_lines(hypotheses, [sources], "sources")
    lengths = [len(source.split()) for source in sources]
    return _by_number(hypotheses, references, numbers=lengths, ends=LENGTHS, metric=metric)


def by_rarest_word(
    hypotheses: Sequence[str],
    references: References,
    sources: Sequence[str],
    counts: Mapping[str, int],
    metric: Mapping[str, Metric],
) -> list[Bucket]:
    """The score by how often the source's rarest word occurs in the training corpus, according to `counts`.

    Lines without words are left out. Raises Mistake if the numbers of lines differ or there are no lines.
    """
    check_lines(hypotheses, [sources], "sources")
    # A line without words has no rarest word; its -1 falls into no bucket.
    rarest = [min((counts.get(word, 0) for word in words_of(source)), default=-1) for source in sources]
    return _by_number(hypotheses, references, numbers=rarest, ends=COUNTS, metric=metric)


def words_of(line: str) -> Iterable[str]:
    """The words of a line, split at spaces, in lower case and without surrounding punctuation."""
    stripped = (word.strip(".,;:!?…\"'()[]{}“”‘’«»-").lower() for word in line.split())
    return (word for word in stripped if word)


def _by_number(
    hypotheses: Sequence[str],
    references: References,
    *,
    numbers: Sequence[int],
    ends: Sequence[int],
    metric: Mapping[str, Metric],
) -> list[Bucket]:
    buckets = []
    for least, most in zip((0, *(end + 1 for end in ends)), (*ends, None), strict=True):
        chosen = [i for i, number in enumerate(numbers) if least <= number and (most is None or number <= most)]
        if chosen:
            of_bucket = [[lines[i] for i in chosen] for lines in references]
            [score] = corpus_scores([hypotheses[i] for i in chosen], of_bucket, metric)
            buckets.append(Bucket(least=least, most=most, sentences=len(chosen), score=score))
    return buckets
