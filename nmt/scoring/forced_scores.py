"""Forced scores: the log-probability of given targets, and their perplexity."""

import math
from collections.abc import Hashable, Sequence
from typing import NamedTuple

from nmt.data.documents import check_named, earlier_pairs
from nmt.errors import Mistake
from nmt.runs.forced_batches import log_probs_of_ids
from nmt.runs.load import LoadedRun
from nmt.text import normalize


class Perplexity(NamedTuple):
    """exp(-sum of log P(target | source) / units), with the end of each sentence counted as one unit.

    Perplexities per piece are comparable only between models with the same tokenizers; those per word (words are
    separated by spaces) and per character are always comparable.
    """

    piece: float
    word: float
    character: float
    lines: int
    """The number of lines included, which are those with a log-probability."""

    def record(self) -> dict[str, float | None]:
        """For JSON: None in place of NaN and infinity."""
        return {name: value if math.isfinite(value) else None for name, value in self._asdict().items()}


def log_probs(
    runs: Sequence[LoadedRun],
    sources: Sequence[str],
    targets: Sequence[str],
    batch_tokens: int = 4096,
    documents: Sequence[Hashable] | None = None,
    verbatim: bool = False,
) -> list[float]:
    """log P(target | source) of each pair of lines, in nats, EOS included; several runs form an ensemble.

    If `documents` says which document each line belongs to, the runs also read the earlier pairs of the same document.
    With `verbatim`, the dictionary of the runs is not used. A pair that is too long for the model gets NaN, with a
    warning. Raises Mistake if the numbers of lines differ, and CheckFailed if the model computes NaN.
    """
    if len(sources) != len(targets):
        raise Mistake(f"{len(sources)} sources but {len(targets)} targets: each source needs one target.")
    if documents is not None:
        check_named(documents, len(sources))
    read = normalize if verbatim else runs[0].source_text
    source_ids = runs[0].tokenizers.source.encode_all([read(line) for line in sources])
    target_ids = runs[0].tokenizers.target.encode_all([normalize(line) for line in targets])
    earlier = None
    if documents is not None:
        earlier = earlier_pairs(documents, list(zip(source_ids, target_ids, strict=True)), runs[0].context_window)
    return log_probs_of_ids(runs, source_ids, target_ids, batch_tokens, earlier)


def perplexity(log_probs: Sequence[float], run: LoadedRun, targets: Sequence[str]) -> Perplexity:
    """The perplexities of targets with these log-probabilities; lines whose value is NaN are left out."""
    lines = [normalize(line) for value, line in zip(log_probs, targets, strict=True) if not math.isnan(value)]
    pieces = sum(len(ids) for ids in run.tokenizers.target.encode_all(lines))
    units = (pieces, sum(len(line.split()) for line in lines), sum(map(len, lines)))
    nats = -sum(value for value in log_probs if not math.isnan(value))
    piece, word, character = (_exp(nats / (number + len(lines))) if lines else math.nan for number in units)
    return Perplexity(piece, word, character, len(lines))


def _exp(nats: float) -> float:
    """The exponential, rounded to 4 decimals, or infinity on overflow."""
    try:
        return round(math.exp(nats), 4)
    except OverflowError:
        return math.inf
