"""Sampling from p(target | source), with temperature, top-k (Fan et al. 2018) and top-p (Holtzman et al. 2020)."""

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from nmt.decoding.constraints import Constraints
from nmt.decoding.id_search import Hypothesis
from nmt.decoding.stepwise import NO_PROBABILITIES, Live, Stepwise
from nmt.errors import CheckFailed, Mistake
from nmt.text.tokenizer import EOS, PAD

MAX_SAMPLES = 10_000
_DRAWN_AT_ONCE = 2**22
"""Number of scores to sort at a time; a sentence with more scores is sorted alone."""


class Sampling(Stepwise):
    """Draws `samples` translations of each sentence, piece by piece.

    The next piece is drawn from softmax(log p / temperature), restricted to the `top_k` most probable pieces (0: all)
    and to the smallest set of most probable pieces with a total probability of at least `top_p`. With both, a piece
    must be in both sets; the total is over all pieces, not over the `top_k` as in transformers. The random numbers
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
        if not 1 <= samples <= MAX_SAMPLES:
            raise Mistake(f"search.samples is {samples}; it must be from 1 to {MAX_SAMPLES}.")
        if not 1e-3 <= temperature <= 1e3:
            raise Mistake(
                f"search.temperature is {temperature}; it must be from 0.001 to 1000 (1 changes nothing; "
                "search=beam search.beam_size=1 always takes the most probable piece)."
            )
        if top_k < 0:
            raise Mistake(f"search.top_k is {top_k}; it must be at least 0 (0 keeps all pieces).")
        if not 0 < top_p <= 1:
            raise Mistake(f"search.top_p is {top_p}; it must be above 0 and at most 1 (1 keeps all pieces).")
        if seed < 0:
            raise Mistake(f"search.seed is {seed}; it must be at least 0.")
        self.samples = self.n_best = self.rows_per_sentence = samples
        self.temperature, self.top_k, self.top_p, self.seed = temperature, top_k, top_p, seed
        self.constraints = constraints or Constraints()

    def begin(
        self,
        source: Int[Tensor, "sentences source"],
        source_mask: Bool[Tensor, "sentences source"],
        longest: Int[Tensor, " sentences"],
    ) -> tuple[Float[Tensor, "sentences samples"], Tensor]:
        # A random number in [0, 1) for each future piece.
        numbers = torch.zeros(len(source), self.samples, int(longest.max()), dtype=torch.double)
        for row, (ids, mask, most) in enumerate(zip(source.cpu(), source_mask.cpu(), longest.tolist(), strict=True)):
            generator = np.random.default_rng([self.seed, *ids[mask].tolist()])
            numbers[row, :, :most] = torch.from_numpy(generator.random((self.samples, most)))
        log_probs = torch.zeros(len(source), self.samples, dtype=torch.double, device=source.device)
        return log_probs, numbers.to(source.device)

    def extend(
        self,
        live: Live,
        log_probs: Float[Tensor, "sentences samples vocab"],
        weights: Float[Tensor, "sentences samples source"] | None,
        finished: list[list[Hypothesis]],
    ) -> tuple[Live, Int[Tensor, "sentences samples"], Bool[Tensor, " sentences"]]:
        scores = self.constraints.apply(
            log_probs.double() / self.temperature, live.ids[:, :, 1:].flatten(0, 1), live.longest, live.prefix
        )
        drawn = self._draw(scores, live.extra[:, :, live.ids.shape[2] - 1])
        # PAD is never drawn, so it marks the samples that ended earlier.
        ended = (live.ids[:, :, -1] == EOS) | (live.ids[:, :, -1] == PAD)
        gained = log_probs.gather(2, drawn.unsqueeze(2)).squeeze(2).masked_fill(ended, 0)
        tokens = drawn.masked_fill(ended, PAD)
        live = live._replace(ids=torch.cat([live.ids, tokens[:, :, None]], dim=2), log_probs=live.log_probs + gained)
        done = (ended | (tokens == EOS)).all(dim=1)
        for row in done.nonzero().flatten().tolist():
            finished[int(live.sentence[row])] = [
                Hypothesis(ids[: ids.index(EOS)], log_prob, log_prob)
                for ids, log_prob in zip(live.ids[row, :, 1:].tolist(), live.log_probs[row].tolist(), strict=True)
            ]
        return live, torch.arange(self.samples, device=tokens.device).expand_as(tokens), done

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
            raise CheckFailed(NO_PROBABILITIES)
        total = probabilities.cumsum(dim=-1)
        # A piece is kept if the total probability of all more probable pieces is below top_p.
        kept = probabilities * (total - probabilities < self.top_p)
        if self.top_k:
            kept[:, :, self.top_k :] = 0
        passed = (kept.cumsum(dim=-1) <= numbers.unsqueeze(2) * kept.sum(dim=-1, keepdim=True)).sum(dim=-1)
        last = kept.gt(0).sum(dim=-1) - 1
        return pieces.gather(2, torch.minimum(passed, last).unsqueeze(2)).squeeze(2)
