"""Sampling from p(target | source), with temperature, top-k (Fan et al. 2018) and top-p (Holtzman et al. 2020)."""

import math
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from nmt.decoding.constraints import Constraints
from nmt.decoding.state import Decodable, Hypothesis, select_rows
from nmt.errors import Mistake
from nmt.text.tokenizer import BOS, EOS, PAD

_DRAWN_AT_ONCE = 2**22
"""Number of scores to sort at a time; a sentence with more scores is sorted alone."""


class Going(NamedTuple):
    """The sentences with at least one unfinished sample, one row each."""

    sentence: Int[Tensor, " sentences"]
    """Index in the original batch."""
    longest: Int[Tensor, " sentences"]
    """Maximum output length, including EOS."""
    prefix: Int[Tensor, "sentences prefix"]
    """The pieces that every sample begins with, padded with PAD."""
    numbers: Float[Tensor, "sentences samples longest"]
    """A random number in [0, 1) for each future piece."""
    log_probs: Float[Tensor, "sentences samples"]
    """Log-probabilities of the samples so far."""
    ended: Bool[Tensor, "sentences samples"]


class Sampling:
    """Draws `samples` translations of each sentence, piece by piece.

    The next piece is drawn from softmax(log p / temperature), restricted to the `top_k` most probable pieces (0: all)
    and to the smallest set of most probable pieces with a total probability of at least `top_p`. The random numbers
    depend only on `seed`, the source and the maximum output length. So a sample does not depend on the other sentences
    in the batch (except through rounding), and equal sources get equal samples. The log_prob and the score of a sample
    are both the model's own log-probability; the most probable sample comes first.

    Raises Mistake if a setting is out of range.
    """

    def __init__(
        self,
        samples: int = 1,
        temperature: float = 1.0,
        top_k: int = 0,
        top_p: float = 1.0,
        seed: int = 1,
        constraints: Constraints | None = None,
    ) -> None:
        if samples < 1:
            raise Mistake(f"search.samples is {samples}; it must be at least 1.")
        if not 0 < temperature < math.inf:
            raise Mistake(f"search.temperature is {temperature}; it must be above 0 and finite (1 changes nothing).")
        if top_k < 0:
            raise Mistake(f"search.top_k is {top_k}; it must be at least 0 (0 keeps all pieces).")
        if not 0 < top_p <= 1:
            raise Mistake(f"search.top_p is {top_p}; it must be above 0 and at most 1 (1 keeps all pieces).")
        if seed < 0:
            raise Mistake(f"search.seed is {seed}; it must be at least 0.")
        self.samples, self.temperature, self.top_k, self.top_p, self.seed = samples, temperature, top_k, top_p, seed
        self.constraints = constraints or Constraints()

    @property
    def n_best(self) -> int:
        return self.samples

    @property
    def rows_per_sentence(self) -> int:
        return self.samples

    def __call__(
        self,
        model: Decodable,
        source: Int[Tensor, "sentences source"],
        source_mask: Bool[Tensor, "sentences source"],
        prefix: Int[Tensor, "sentences prefix"] | None = None,
    ) -> list[list[Hypothesis]]:
        """`samples` hypotheses per sentence, each beginning with the sentence's row of `prefix` (padded with PAD).

        Raises Mistake if the model's log-probabilities are NaN, or if the constraints allow no piece.
        """
        memory = model.encode(source, source_mask)
        state = model.start(memory, self.samples)
        going = self._start(source, source_mask, model.max_target, prefix)
        tokens = source.new_full((len(source), self.samples), BOS)
        history = tokens.new_empty(tokens.numel(), 0)
        found: list[list[Hypothesis]] = [[] for _ in source]
        while len(going.sentence):
            log_probs, state = model.step(tokens, state, memory)
            scores = self.constraints.apply(log_probs.double() / self.temperature, history, going.longest, going.prefix)
            drawn = self._draw(scores, going.numbers[:, :, history.shape[1]])
            gained = log_probs.gather(2, drawn.unsqueeze(2)).squeeze(2).masked_fill(going.ended, 0)
            tokens = drawn.masked_fill(going.ended, PAD)
            history = torch.cat([history, tokens.reshape(-1, 1)], dim=1)
            going = going._replace(log_probs=going.log_probs + gained, ended=going.ended | (tokens == EOS))
            done = going.ended.all(dim=1)
            if done.any():
                self._collect(found, going, history, done)
                rest = (~done).nonzero().squeeze(1)
                going, memory, tokens = select_rows((going, memory, tokens), rest)
                rows = rest[:, None] * self.samples + torch.arange(self.samples, device=rest.device)
                state, history = select_rows((state, history), rows.flatten())
        return found

    def _start(
        self,
        source: Int[Tensor, "sentences source"],
        source_mask: Bool[Tensor, "sentences source"],
        max_target: int | None,
        prefix: Int[Tensor, "sentences prefix"] | None,
    ) -> Going:
        begin = source.new_empty(len(source), 0) if prefix is None else prefix
        longest = self.constraints.longest(source_mask, max_target, begin)
        numbers = torch.zeros(len(source), self.samples, int(longest.max()), dtype=torch.double)
        for row, (ids, mask, most) in enumerate(zip(source.cpu(), source_mask.cpu(), longest.tolist(), strict=True)):
            generator = np.random.default_rng([self.seed, *ids[mask].tolist()])
            numbers[row, :, :most] = torch.from_numpy(generator.random((self.samples, most)))
        nothing = torch.zeros(len(source), self.samples, dtype=torch.double, device=source.device)
        return Going(
            sentence=torch.arange(len(source), device=source.device),
            longest=longest,
            prefix=begin,
            numbers=numbers.to(source.device),
            log_probs=nothing,
            ended=nothing.bool(),
        )

    def _draw(
        self, scores: Float[Tensor, "sentences samples vocab"], numbers: Float[Tensor, "sentences samples"]
    ) -> Int[Tensor, "sentences samples"]:
        """Samples by inversion: takes the first kept piece whose cumulative probability exceeds the random number."""
        # The batch is processed in parts, because sorting takes several times the memory of the scores.
        size = max(1, _DRAWN_AT_ONCE // scores[0].numel())
        parts = zip(scores.split(size), numbers.split(size), strict=True)
        return torch.cat([self._draw_part(*part) for part in parts])

    def _draw_part(
        self, scores: Float[Tensor, "sentences samples vocab"], numbers: Float[Tensor, "sentences samples"]
    ) -> Int[Tensor, "sentences samples"]:
        probabilities, pieces = scores.softmax(dim=-1).sort(dim=-1, descending=True, stable=True)
        if not probabilities.isfinite().all():
            raise Mistake(
                "There is no next piece to sample, because the model's log-probabilities are NaN or search.constraints "
                "block all pieces; check the model's weights, or relax the constraints."
            )
        total = probabilities.cumsum(dim=-1)
        # A piece is kept if the total probability of all more probable pieces is below top_p.
        kept = probabilities * (total - probabilities < self.top_p)
        if self.top_k:
            kept[:, :, self.top_k :] = 0
        passed = (kept.cumsum(dim=-1) <= numbers.unsqueeze(2) * kept.sum(dim=-1, keepdim=True)).sum(dim=-1)
        last = kept.gt(0).sum(dim=-1) - 1
        return pieces.gather(2, torch.minimum(passed, last).unsqueeze(2)).squeeze(2)

    def _collect(
        self,
        found: list[list[Hypothesis]],
        going: Going,
        history: Int[Tensor, "rows length"],
        done: Bool[Tensor, " sentences"],
    ) -> None:
        """Moves the samples of finished sentences to `found`."""
        samples = history.unflatten(0, (-1, self.samples))
        for row in done.nonzero().flatten().tolist():
            hypotheses = [
                Hypothesis(ids[: ids.index(EOS)], log_prob, log_prob)
                for ids, log_prob in zip(samples[row].tolist(), going.log_probs[row].tolist(), strict=True)
            ]
            found[int(going.sentence[row])] = sorted(hypotheses, key=lambda hypothesis: -hypothesis.score)
