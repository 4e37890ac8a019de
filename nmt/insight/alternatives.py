"""The pieces that a run considers most likely at each position of a translation."""

from typing import NamedTuple

from nmt.errors import Mistake
from nmt.insight.sentence_pair import step_log_probs
from nmt.runs.load import LoadedRun


class Alternative(NamedTuple):
    """A piece that may come next."""

    piece: str
    id: int
    log_prob: float
    """In nats."""


def alternatives(run: LoadedRun, source: list[int], target: list[int], number: int) -> list[list[Alternative]]:
    """The `number` most likely pieces at each position of a target, EOS included, best first.

    Source and target are ids without BOS and EOS. Raises whatever `step_log_probs` raises, and Mistake
    if `number` is below 1.
    """
    if number < 1:
        raise Mistake(f"number is {number}; it must be at least 1.")
    log_probs = step_log_probs(run, source, target)
    best = log_probs.topk(min(number, log_probs.shape[1]))
    pieces = run.tokenizers.target.pieces
    return [
        [Alternative(*piece) for piece in zip(pieces(ids), ids, values, strict=True)]
        for ids, values in zip(best.indices.tolist(), best.values.tolist(), strict=True)
    ]
