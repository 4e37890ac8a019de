"""Batched beam search; with a beam of 1 it is greedy search."""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from nmt.decoding.constraints import Constraints
from nmt.decoding.state import Decodable, Hypothesis, Memory, State, move_rows, select_rows
from nmt.errors import Mistake
from nmt.kernels.wide_top_k import wide_top_k
from nmt.text.tokenizer import BOS, EOS

_LEAST_COVERED = 1e-3
"""Lower bound on the coverage of a source piece: with a window or sparsemax, coverage may be 0, and log 0 is -inf."""

_NO_PROBABILITIES = (
    "Sentence {sentence} of the batch has no translation, because the model's log-probabilities are NaN or -inf; check "
    "the model's weights, or search in float32."
)


MAX_BEAM_SIZE = 1000
"""Each hypothesis needs scores for the whole vocabulary: 1000 hypotheses x 32,000 pieces take 128 MB per sentence."""


class Live(NamedTuple):
    """The sentences whose search is not finished, one row each."""

    sentence: Int[Tensor, " sentences"]
    """Index in the original batch."""
    longest: Int[Tensor, " sentences"]
    """Maximum output length, including EOS."""
    prefix: Int[Tensor, "sentences prefix"]
    """The pieces that every hypothesis begins with, padded with PAD."""
    words: Bool[Tensor, "sentences source"]
    """The source pieces subject to the coverage penalty: all but EOS and padding."""
    log_probs: Float[Tensor, "sentences beams"]
    """Log-probabilities of the unfinished hypotheses; -inf for an unused beam."""
    finished: Int[Tensor, " sentences"]
    """Number of finished hypotheses."""
    best: Float[Tensor, "sentences n_best"]
    """The highest scores of the finished hypotheses, best first, padded with -inf."""


class Rows(NamedTuple):
    """The pieces and the coverage of each unfinished hypothesis; row = sentence * beams + beam."""

    history: Int[Tensor, "rows length"]
    """The pieces, without BOS."""
    covered: Float[Tensor, "rows source"]
    """Attention weights summed over all steps; if there is no coverage penalty, a single column of zeros."""


class Candidates(NamedTuple):
    """The best one-token extensions of a sentence's unfinished hypotheses, best first."""

    log_probs: Float[Tensor, "sentences candidates"]
    parents: Int[Tensor, "sentences candidates"]
    """The beam of the hypothesis that is extended."""
    tokens: Int[Tensor, "sentences candidates"]


class Step(NamedTuple):
    """The hypotheses that a step of the search kept, for an observer.

    `parents` are beams of the previous step. A sentence has no row once its search has ended.
    """

    sentence: Int[Tensor, " sentences"]
    """Index in the batch."""
    parents: Int[Tensor, "sentences beams"]
    tokens: Int[Tensor, "sentences beams"]
    log_probs: Float[Tensor, "sentences beams"]
    """Log-probabilities of the whole hypotheses, in nats; -inf for an unused beam."""


Observe = Callable[[Step], None]


class BeamSearch:
    """Beam search with the length and coverage penalties of GNMT (Wu et al. 2016, equation 14):
    score = log P(Y|X) / ((5 + |Y|) / 6)^alpha + beta sum_s log min(sum_t a_ts, 1).

    |Y| counts EOS. s runs over the source pieces except EOS; a_ts is the last layer's cross attention, averaged over
    the heads, and sum_t a_ts is raised to at least 0.001. Each step considers the 2 x `beam_size` candidates with the
    highest log-probability. A candidate that ends in EOS is finished if it ranks among the first `beam_size`; the best
    `beam_size` of the others are extended further. The search for a sentence ends at the maximum length. It ends
    earlier if `beam_size` hypotheses are finished and no unfinished one has a higher score so far than the best of
    them, or if no unfinished hypothesis can still enter the `n_best` (see `_done`). The best hypothesis therefore does
    not depend on `n_best`. Greedy search ends at the first EOS.

    `length_penalty` is alpha (0 turns it off), and `coverage_penalty` is beta. Raises Mistake if a setting is out of
    range.
    """

    revision = 3
    """Incremented when a change makes the same settings find different translations, so old scores are not reused."""

    def __init__(
        self,
        beam_size: int = 5,
        length_penalty: float = 0.6,
        coverage_penalty: float = 0.0,
        n_best: int = 1,
        constraints: Constraints | None = None,
    ) -> None:
        if not 1 <= beam_size <= MAX_BEAM_SIZE:
            raise Mistake(
                f"search.beam_size is {beam_size}; it must be between 1 (greedy search) and {MAX_BEAM_SIZE}, because "
                "each hypothesis needs memory for the scores of the whole vocabulary."
            )
        if not math.isfinite(length_penalty):
            raise Mistake(f"search.length_penalty is {length_penalty}; it must be a finite number (0 turns it off).")
        if not 0 <= coverage_penalty < math.inf:
            raise Mistake(f"search.coverage_penalty is {coverage_penalty}; it must be finite and at least 0.")
        if not 1 <= n_best <= beam_size:
            raise Mistake(
                f"search.n_best is {n_best}; it must be between 1 and search.beam_size, which is {beam_size}."
            )
        self.beam_size, self.n_best = beam_size, n_best
        self.length_penalty, self.coverage_penalty = length_penalty, coverage_penalty
        self.constraints = constraints or Constraints()

    @property
    def rows_per_sentence(self) -> int:
        return self.beam_size

    def __call__(
        self,
        model: Decodable,
        source: Int[Tensor, "sentences source"],
        source_mask: Bool[Tensor, "sentences source"],
        prefix: Int[Tensor, "sentences prefix"] | None = None,
        observe: Observe | None = None,
    ) -> list[list[Hypothesis]]:
        """Between 1 and `n_best` hypotheses per sentence, best first.

        Each begins with the sentence's row of `prefix` (padded with PAD), cut to the model's maximum output length.
        `observe` receives every step. Raises Mistake if the model's log-probabilities are NaN, or if they are -inf
        for every possible translation.
        """
        memory, own_memory = model.encode(source, source_mask), False
        state = model.start(memory, self.beam_size)
        live = self._start(source_mask, model.max_target, prefix)
        tokens = source.new_full(live.log_probs.shape, BOS)
        rows = Rows(tokens.new_empty(tokens.numel(), 0), live.log_probs.new_zeros(tokens.numel(), 1))
        found: list[list[Hypothesis]] = [[] for _ in source]
        length = 0
        while len(live.sentence):
            length += 1
            log_probs, state, rows = self._step(model, tokens, state, memory, rows)
            candidates = self._candidates(live, log_probs, rows.history)
            ending = candidates.tokens == EOS
            if ending.any():
                live = self._finish(found, live, candidates, rows)
                candidates = self._unfinished(candidates, ending)
            log_probs, parents, tokens = _keep_rows(Candidates(*(part[:, : self.beam_size] for part in candidates)))
            live = live._replace(log_probs=log_probs)
            if observe:
                observe(Step(live.sentence, parents, tokens, log_probs))

            chosen = parents + torch.arange(0, parents.numel(), self.beam_size, device=parents.device)[:, None]
            done = self._done(live, length)
            if done.any():
                going = _fill_gaps(~done)
                # The first time, rows are copied, because Memory may hold the caller's mask or shared tensors.
                memory, own_memory = (move_rows if own_memory else select_rows)(memory, going), True
                live, tokens, chosen = select_rows((live, tokens, chosen), going)
            state, rows = move_rows(state, chosen.flatten()), select_rows(rows, chosen.flatten())
            rows = rows._replace(history=torch.cat([rows.history, tokens.reshape(-1, 1)], dim=1))
        return [self._ranked(index, hypotheses) for index, hypotheses in enumerate(found)]

    def _start(
        self,
        source_mask: Bool[Tensor, "sentences source"],
        max_target: int | None,
        prefix: Int[Tensor, "sentences prefix"] | None,
    ) -> Live:
        lengths = source_mask.sum(1)
        begin = lengths.new_empty(len(lengths), 0) if prefix is None else prefix
        # At the start, only the first beam is used; the others would duplicate it.
        log_probs = torch.full((len(lengths), self.beam_size), -math.inf, device=lengths.device)
        log_probs[:, 0] = 0
        return Live(
            sentence=torch.arange(len(lengths), device=lengths.device),
            longest=self.constraints.longest(source_mask, max_target, begin),
            prefix=begin,
            words=torch.arange(source_mask.shape[1], device=lengths.device) < lengths[:, None] - 1,
            log_probs=log_probs,
            finished=torch.zeros_like(lengths),
            best=torch.full_like(log_probs[:, : self.n_best], -math.inf),
        )

    def _step(
        self, model: Decodable, tokens: Int[Tensor, "sentences beams"], state: State, memory: Memory, rows: Rows
    ) -> tuple[Float[Tensor, "sentences beams vocab"], State, Rows]:
        """One step of the model; if there is a coverage penalty, attention weights are summed too."""
        if not self.coverage_penalty:
            return *model.step(tokens, state, memory), rows
        log_probs, weights, state = model.attending_step(tokens, state, memory)
        return log_probs, state, rows._replace(covered=rows.covered + weights.flatten(0, 1))

    def _candidates(
        self, live: Live, log_probs: Float[Tensor, "sentences beams vocab"], history: Int[Tensor, "rows length"]
    ) -> Candidates:
        totals = log_probs.add_(live.log_probs[:, :, None])
        totals = self.constraints.apply(totals, history, live.longest, live.prefix)
        best, index = wide_top_k(totals.flatten(1), 2 * self.beam_size)
        if best[:, 0].isnan().any():  # NaN comes first
            raise Mistake(_NO_PROBABILITIES.format(sentence=int(live.sentence[best[:, 0].isnan()][0])))
        vocab = totals.shape[2]
        return Candidates(best, index // vocab, index % vocab)

    def _finish(self, found: list[list[Hypothesis]], live: Live, candidates: Candidates, rows: Rows) -> Live:
        """Adds to `found` those of the first `beam_size` candidates that end in EOS."""
        log_probs = candidates.log_probs[:, : self.beam_size]
        ending = (candidates.tokens[:, : self.beam_size] == EOS) & (log_probs > -math.inf)
        length = rows.history.shape[1] + 1
        scores = log_probs / self.length_factor(length)
        if self.coverage_penalty:
            scores = scores + self._coverage(live, candidates.parents[:, : self.beam_size], rows.covered)
        sentences, ranks = ending.nonzero(as_tuple=True)
        parents = sentences * self.beam_size + candidates.parents[sentences, ranks]
        for sentence, *hypothesis in zip(
            live.sentence[sentences].tolist(),
            rows.history[parents].tolist(),
            log_probs[sentences, ranks].tolist(),
            scores[sentences, ranks].tolist(),
            strict=True,
        ):
            found[sentence].append(Hypothesis(*hypothesis))
        ended = scores.masked_fill(~ending, -math.inf).to(live.best.dtype)
        best = torch.cat([live.best, ended], dim=1).topk(self.n_best).values
        return live._replace(finished=live.finished + ending.sum(1), best=best)

    def _coverage(
        self, live: Live, parents: Int[Tensor, "sentences beams"], covered: Float[Tensor, "rows source"]
    ) -> Float[Tensor, "sentences beams"]:
        """beta sum_s log min(sum_t a_ts, 1) of the hypothesis that each candidate extends."""
        sums = covered.unflatten(0, (-1, self.beam_size)).clamp(_LEAST_COVERED, 1)
        penalties = sums.log().masked_fill(~live.words[:, None], 0).sum(dim=-1)
        return self.coverage_penalty * penalties.gather(1, parents)

    def _unfinished(self, candidates: Candidates, ending: Bool[Tensor, "sentences candidates"]) -> Candidates:
        """Moves the candidates that end in EOS, of which there are at most `beam_size`, after all others."""
        order = ending.byte().argsort(dim=1, stable=True)
        return Candidates(*(part.gather(1, order) for part in candidates))

    def _done(self, live: Live, length: int) -> Bool[Tensor, " sentences"]:
        """True for sentences that have enough finished hypotheses, are at their maximum length, or cannot improve.

        If a model is confident of a long translation, many poor short hypotheses finish before it does. Therefore
        `beam_size` finished hypotheses are enough only if no unfinished one scores higher than the best of them, where
        an unfinished hypothesis is scored by its pieces so far.

        Log-probabilities never increase, and the coverage penalty is at most 0. So a final score is bounded by the
        current log-probability divided by the largest length factor that is still possible, which is the factor of the
        maximum length, or of the next length if alpha is negative.
        """
        reach = live.longest if self.length_penalty >= 0 else torch.full_like(live.longest, length + 1)
        highest = live.log_probs.amax(dim=1)
        enough = live.finished >= self.beam_size
        if self.beam_size > 1:
            enough &= highest / self.length_factor(length) <= live.best[:, 0]
        bound = highest / ((5 + reach) / 6) ** self.length_penalty
        return enough | (live.longest <= length) | (live.best[:, -1] >= bound)

    def length_factor(self, length: int) -> float:
        """((5 + length) / 6)^alpha, by which the log-probability of a hypothesis of `length` pieces is divided."""
        return float(((5 + length) / 6) ** self.length_penalty)

    def _ranked(self, index: int, hypotheses: list[Hypothesis]) -> list[Hypothesis]:
        if not hypotheses:
            raise Mistake(_NO_PROBABILITIES.format(sentence=index))
        return sorted(hypotheses, key=lambda hypothesis: hypothesis.score, reverse=True)[: self.n_best]


class Observed:
    """A BeamSearch that reports every step to `observe` and is called like any Search.

    An exception that `observe` raises ends the search.
    """

    def __init__(self, search: BeamSearch, observe: Observe) -> None:
        self.search, self.observe = search, observe
        self.n_best, self.rows_per_sentence, self.constraints = search.n_best, search.beam_size, search.constraints

    def __call__(
        self,
        model: Decodable,
        source: Int[Tensor, "sentences source"],
        source_mask: Bool[Tensor, "sentences source"],
        prefix: Int[Tensor, "sentences prefix"] | None = None,
    ) -> list[list[Hypothesis]]:
        """See BeamSearch."""
        return self.search(model, source, source_mask, prefix, self.observe)


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


def _fill_gaps(going: Bool[Tensor, " sentences"]) -> Int[Tensor, " going"]:
    """Indices of the remaining sentences: each keeps its row, except that the last ones fill the gaps."""
    size = int(going.sum())
    order = torch.arange(size, device=going.device)
    order[~going[:size]] = going[size:].nonzero().squeeze(1) + size
    return order
