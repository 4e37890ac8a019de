"""Batched beam search; with a beam of 1 it is greedy search."""

import math
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from nmt.decoding.constraints import Constraints
from nmt.decoding.id_search import Hypothesis
from nmt.decoding.search_settings import BeamSettings
from nmt.decoding.stepwise import NO_PROBABILITIES, Live, Stepwise
from nmt.errors import CheckFailed
from nmt.kernels.wide_top_k import wide_top_k
from nmt.text.tokenizer import EOS

_LEAST_COVERED = 1e-3
"""Lower bound on the coverage of a source piece: with a window or sparsemax, coverage may be 0, and log 0 is -inf."""


class Ranking(NamedTuple):
    """State that decides the scores of a sentence's hypotheses and when its search ends."""

    penalized: Bool[Tensor, "sentences source"]
    """The source pieces subject to the coverage penalty: all but EOS, padding and earlier sentences."""
    covered: Float[Tensor, "sentences beams _"]
    """Attention weights summed over all steps; 0 if there is no coverage penalty."""
    finished: Int[Tensor, " sentences"]
    """Number of finished hypotheses."""
    best: Float[Tensor, "sentences n_best"]
    """The highest scores of the finished hypotheses, best first, padded with -inf."""
    longest_factor: Float[Tensor, " sentences"]
    """The length factor of the sentence's maximum length."""


class Candidates(NamedTuple):
    """The best one-token extensions of a sentence's unfinished hypotheses, best first."""

    log_probs: Float[Tensor, "sentences candidates"]
    parents: Int[Tensor, "sentences candidates"]
    """The beam of the hypothesis that is extended."""
    tokens: Int[Tensor, "sentences candidates"]


class BeamSearch(BeamSettings, Stepwise):
    """Beam search with the length and coverage penalties of GNMT (Wu et al. 2016, equation 14):
    score = log P(Y|X) / ((5 + |Y|) / 6)^alpha + beta sum_s log min(sum_t a_ts, 1).

    |Y| counts EOS. s runs over the pieces of the source sentence except EOS; a_ts is the last layer's cross attention,
    averaged over the heads, and sum_t a_ts is raised to at least 0.001. Each step considers the 2 x `beam_size`
    candidates with the highest log-probability. A candidate that ends in EOS is finished if it ranks among the first
    `beam_size`; the best `beam_size` of the others are extended further. The search for a sentence ends at the maximum
    length. It ends earlier if `beam_size` hypotheses are finished and no unfinished one has a higher score so far
    (without its coverage penalty, which is at most 0) than the best of them, or if no unfinished hypothesis can still
    enter the `n_best` (see `_done`). The best hypothesis therefore does not depend on `n_best`. Greedy search ends at
    the first EOS.

    `length_penalty` is alpha (0 turns it off), and `coverage_penalty` is beta. Raises Mistake if a setting is out of
    range.
    """

    revision = 4
    """Incremented when a change makes the same settings find different translations, so old scores are not reused."""

    constraints: Constraints

    def __init__(
        self,
        beam_size: int = 5,
        length_penalty: float = 0.6,
        coverage_penalty: float = 0.0,
        n_best: int = 1,
        constraints: Constraints | None = None,
    ) -> None:
        super().__init__(beam_size, length_penalty, coverage_penalty, n_best, constraints or Constraints())
        self.attends = coverage_penalty > 0

    def begin(
        self,
        source: Int[Tensor, "sentences source"],
        source_mask: Bool[Tensor, "sentences source"],
        longest: Int[Tensor, " sentences"],
    ) -> tuple[Float[Tensor, "sentences beams"], Ranking]:
        lengths = source_mask.sum(1)
        log_probs = torch.full((len(source), self.beam_size), -math.inf, device=source.device)
        log_probs[:, 0] = 0  # at the start, only the first beam is used; the others would duplicate it
        before_end = torch.arange(source.shape[1], device=source.device) < lengths[:, None] - 1
        # With context=concatenate, each earlier sentence ends in an EOS of its own.
        earlier = (before_end & (source == EOS)).flip(1).cumsum(1).flip(1) > 0
        return log_probs, Ranking(
            penalized=before_end & ~earlier,
            covered=log_probs.new_zeros(*log_probs.shape, 1),
            finished=torch.zeros_like(lengths),
            best=torch.full_like(log_probs[:, : self.n_best], -math.inf),
            longest_factor=((5 + longest) / 6) ** self.length_penalty,
        )

    def extend(
        self,
        live: Live,
        log_probs: Float[Tensor, "sentences beams vocab"],
        weights: Float[Tensor, "sentences beams source"] | None,
        finished: list[list[Hypothesis]],
    ) -> tuple[Live, Int[Tensor, "sentences beams"], Bool[Tensor, " sentences"]]:
        ranking: Ranking = live.extra
        if weights is not None:
            ranking = ranking._replace(covered=ranking.covered + weights)
        candidates = self._candidates(live, log_probs)
        ending = candidates.tokens == EOS
        if ending.any():
            ranking = self._finish(finished, live, ranking, candidates)
            # Moves the candidates that end in EOS, of which there are at most `beam_size`, after all others.
            order = ending.byte().argsort(dim=1, stable=True)
            candidates = Candidates(*(part.gather(1, order) for part in candidates))
        log_probs, parents, tokens = _keep_rows(Candidates(*(part[:, : self.beam_size] for part in candidates)))
        ids = torch.cat([_of_parents(live.ids, parents), tokens[:, :, None]], dim=2)
        if self.attends:
            ranking = ranking._replace(covered=_of_parents(ranking.covered, parents))
        live = live._replace(ids=ids, log_probs=log_probs, extra=ranking)
        return live, parents, self._done(live, ranking)

    def _candidates(self, live: Live, log_probs: Float[Tensor, "sentences beams vocab"]) -> Candidates:
        totals = log_probs.add_(live.log_probs[:, :, None])
        totals = self.constraints.apply(totals, live.ids[:, :, 1:].flatten(0, 1), live.longest, live.prefix)
        best, index = wide_top_k(totals.flatten(1), 2 * self.beam_size)
        if best[:, 0].isnan().any():  # NaN comes first
            raise CheckFailed(NO_PROBABILITIES)
        vocab = totals.shape[2]
        return Candidates(best, index // vocab, index % vocab)

    def _finish(
        self, finished: list[list[Hypothesis]], live: Live, ranking: Ranking, candidates: Candidates
    ) -> Ranking:
        """Adds to `finished` those of the first `beam_size` candidates that end in EOS."""
        log_probs = candidates.log_probs[:, : self.beam_size]
        ending = (candidates.tokens[:, : self.beam_size] == EOS) & (log_probs > -math.inf)
        scores = log_probs / self.length_factor(live.ids.shape[2])  # BOS takes the place of EOS
        if self.coverage_penalty:
            scores = scores + self._coverage(ranking, candidates.parents[:, : self.beam_size])
        sentences, ranks = ending.nonzero(as_tuple=True)
        for sentence, *hypothesis in zip(
            live.sentence[sentences].tolist(),
            live.ids[sentences, candidates.parents[sentences, ranks], 1:].tolist(),
            log_probs[sentences, ranks].tolist(),
            scores[sentences, ranks].tolist(),
            strict=True,
        ):
            finished[sentence].append(Hypothesis(*hypothesis))
        ended = scores.masked_fill(~ending, -math.inf).to(ranking.best.dtype)
        best = torch.cat([ranking.best, ended], dim=1).topk(self.n_best).values
        return ranking._replace(finished=ranking.finished + ending.sum(1), best=best)

    def _coverage(self, ranking: Ranking, parents: Int[Tensor, "sentences beams"]) -> Float[Tensor, "sentences beams"]:
        """beta sum_s log min(sum_t a_ts, 1) of the hypothesis that each candidate extends."""
        sums = ranking.covered.clamp(_LEAST_COVERED, 1)
        penalties = sums.log().masked_fill(~ranking.penalized[:, None], 0).sum(dim=-1)
        return self.coverage_penalty * penalties.gather(1, parents)

    def _done(self, live: Live, ranking: Ranking) -> Bool[Tensor, " sentences"]:
        """True for sentences that have enough finished hypotheses, are at their maximum length, or cannot improve.

        If a model is confident of a long translation, many poor short hypotheses finish before it does. Therefore
        `beam_size` finished hypotheses are enough only if no unfinished one scores higher than the best of them, where
        an unfinished hypothesis is scored by its pieces so far, without its coverage penalty.

        Log-probabilities never increase, and the coverage penalty is at most 0. So a final score is bounded by the
        current log-probability divided by the largest length factor that is still possible, which is the factor of the
        maximum length, or of the next length if alpha is negative.
        """
        length = live.ids.shape[2] - 1
        highest = live.log_probs.amax(dim=1)
        enough = ranking.finished >= self.beam_size
        if self.beam_size > 1:
            enough &= highest / self.length_factor(length) <= ranking.best[:, 0]
        bound = highest / (ranking.longest_factor if self.length_penalty >= 0 else self.length_factor(length + 1))
        return enough | (live.longest <= length) | (ranking.best[:, -1] >= bound)


def _keep_rows(chosen: Candidates) -> tuple[Tensor, Tensor, Tensor]:
    """Log-probabilities, parents and tokens, ordered so that each parent's best extension keeps the parent's row."""
    beams = chosen.parents.shape[1]
    places = torch.arange(beams, device=chosen.parents.device)
    equal = chosen.parents[:, :, None] == chosen.parents[:, None, :]
    first = ~(equal & (places < places[:, None])).any(dim=2)
    taken = torch.zeros_like(first).scatter(1, chosen.parents, True)
    free = taken.byte().argsort(dim=1, stable=True)
    later = free.gather(1, ((~first).cumsum(dim=1) - 1).clamp(min=0))
    order = torch.where(first, chosen.parents, later).argsort(dim=1)
    log_probs, parents, tokens = (part.gather(1, order) for part in chosen)
    return log_probs, parents, tokens


def _of_parents(
    values: Shaped[Tensor, "sentences beams width"], parents: Int[Tensor, "sentences beams"]
) -> Shaped[Tensor, "sentences beams width"]:
    """The values of the hypotheses that are extended."""
    return values.gather(1, parents[:, :, None].expand(-1, -1, values.shape[2]))
