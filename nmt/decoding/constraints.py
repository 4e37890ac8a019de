"""Constraints on hypotheses: their length, first pieces and repetitions."""

import math

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from nmt.errors import Mistake
from nmt.text.tokenizer import EOS, PAD

_LARGEST_RATIO = 1000
_LONGEST = 100_000
"""The largest lengths that a search can be told to reach, in pieces; no text has sentences of this length."""

Scores = Float[Tensor, "sentences beams vocab"]


class Constraints:
    """Gives the score -inf to the pieces that must not come next.

    Lengths include EOS. A hypothesis has at least `min_length` pieces. Its maximum length is the smaller of
    `max_length` and max_length_ratio * S + max_length_offset for S source pieces, but at least `min_length`, at least
    the length of the prefix with EOS, and at most the model's limit. At the maximum length only EOS is allowed, so
    every hypothesis is complete. No sequence of `no_repeat_ngram` pieces occurs twice (0: no limit). PAD, BOS and UNK
    are never generated; with byte fallback no text needs UNK. The maximum length takes precedence over a forced piece
    of the prefix, and both take precedence over all other constraints.

    Raises Mistake if a setting is out of range.
    """

    def __init__(
        self,
        min_length: int = 1,
        max_length: int | None = None,
        max_length_ratio: float = 2.0,
        max_length_offset: int = 10,
        no_repeat_ngram: int = 0,
    ) -> None:
        _require("min_length", min_length, 1, "because EOS is counted")
        if max_length is not None:
            _require("max_length", max_length, min_length, "which is search.constraints.min_length")
        if not 0 <= max_length_ratio <= _LARGEST_RATIO:
            raise Mistake(
                f"search.constraints.max_length_ratio is {max_length_ratio}; it must be from 0 to {_LARGEST_RATIO}."
            )
        _require("max_length_offset", max_length_offset, 1, "to leave room for EOS")
        _require("no_repeat_ngram", no_repeat_ngram, 0, "which allows every repetition")
        self.min_length, self.max_length = min_length, max_length
        self.max_length_ratio, self.max_length_offset = max_length_ratio, max_length_offset
        self.no_repeat_ngram = no_repeat_ngram

    def check_reachable(self, longest_source: int) -> None:
        """Raises Mistake if `min_length` exceeds the maximum length for the longest source that a search accepts."""
        most = int(longest_source * self.max_length_ratio + self.max_length_offset)
        if self.min_length > most:
            raise Mistake(
                f"search.constraints.min_length is {self.min_length}, but a source of {longest_source} pieces, the "
                f"longest that a search accepts, allows at most {most} (max_length_ratio x source + "
                f"max_length_offset): use a min_length of at most {most}."
            )

    def longest(
        self,
        source_mask: Bool[Tensor, "sentences source"],
        max_target: int | None,
        prefix: Int[Tensor, "sentences prefix"],
    ) -> Int[Tensor, " sentences"]:
        """The maximum length for each sentence; it has room for the prefix and EOS unless `max_target` is too small."""
        longest = (source_mask.sum(1) * self.max_length_ratio + self.max_length_offset).long()
        if self.max_length is not None:
            longest = longest.clamp(max=self.max_length)
        positions = torch.arange(1, prefix.shape[1] + 1, device=prefix.device)
        fixed = (prefix.ne(PAD) * positions).amax(1) if len(positions) else torch.zeros_like(longest)
        longest = torch.maximum(longest, fixed + 1).clamp(min=self.min_length)
        return longest if max_target is None else longest.clamp(max=max_target)

    def apply(
        self,
        scores: Scores,
        history: Int[Tensor, "rows length"],
        longest: Int[Tensor, " sentences"],
        prefix: Int[Tensor, "sentences prefix"],
    ) -> Scores:
        """Overwrites the scores of the pieces that must not follow each row of `history`, and returns the scores.

        Row = sentence * beams + beam; `history` has no BOS. `prefix` is padded with PAD; a PAD before another piece
        leaves the choice at its position to the search.
        """
        step = history.shape[1]
        only = prefix[:, step] if step < prefix.shape[1] else torch.full_like(longest, PAD)
        only = torch.where(longest == step + 1, EOS, only)
        single = only.ne(PAD)
        kept = scores.gather(2, only[:, None, None].expand(-1, scores.shape[1], 1)) if single.any() else None
        if self.no_repeat_ngram and step >= self.no_repeat_ngram:
            scores.flatten(0, 1)[_repetitions(history, self.no_repeat_ngram)] = -math.inf
        scores.narrow(2, 0, EOS).fill_(-math.inf)  # PAD, UNK and BOS are the ids before EOS
        if step + 1 < self.min_length:
            scores[:, :, EOS] = -math.inf
        if step + 1 < prefix.shape[1]:  # a hypothesis must not end before a later piece
            scores[:, :, EOS].masked_fill_(prefix[:, step + 1 :].ne(PAD).any(dim=1)[:, None], -math.inf)
        if kept is None:
            return scores
        scores.masked_fill_(single[:, None, None], -math.inf)
        # PAD stays blocked in sentences without a forced piece.
        return scores.scatter_(
            2, only[:, None, None].expand_as(kept), kept.masked_fill(~single[:, None, None], -math.inf)
        )


def _repetitions(history: Int[Tensor, "rows length"], n: int) -> tuple[Tensor, Tensor]:
    """The rows, and for each a piece that would repeat an n-gram of the row's history if it came next."""
    windows, last = history.unfold(1, n, 1), history[:, history.shape[1] - n + 1 :]
    rows, starts = (windows[:, :, :-1] == last.unsqueeze(1)).all(dim=-1).nonzero(as_tuple=True)
    return rows, windows[rows, starts, -1]


def _require(name: str, value: object, least: int, reason: str) -> None:
    if not isinstance(value, int) or value < least:
        raise Mistake(f"search.constraints.{name} is {value}; it must be a whole number of at least {least}, {reason}.")
    if value > _LONGEST:
        raise Mistake(f"search.constraints.{name} is {value}; it must be at most {_LONGEST:,}.")
