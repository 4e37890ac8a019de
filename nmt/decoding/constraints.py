"""Constraints on hypotheses: their length, first pieces and repetitions."""

import math

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from nmt.decoding.search_settings import ConstraintSettings
from nmt.text.tokenizer import EOS, PAD

Scores = Float[Tensor, "sentences beams vocab"]


class Constraints(ConstraintSettings):
    """Gives the score -inf to the pieces that must not come next."""

    def longest(
        self,
        source_mask: Bool[Tensor, "sentences source"],
        max_target: int | None,
        prefix: Int[Tensor, "sentences prefix"],
    ) -> Int[Tensor, " sentences"]:
        """`limit` for each sentence; rows of `prefix` are padded with PAD."""
        positions = torch.arange(1, prefix.shape[1] + 1, device=prefix.device)
        fixed = (prefix.ne(PAD) * positions).amax(1) if len(positions) else prefix.new_zeros(len(prefix))
        lengths = zip(source_mask.sum(1).tolist(), fixed.tolist(), strict=True)
        return fixed.new_tensor([self.limit(source, pieces, max_target) for source, pieces in lengths])

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
