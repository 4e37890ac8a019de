"""Ensembles: several models that translate together by averaging their probabilities."""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from nmt.data.batch import ContextSentences
from nmt.decoding.state import Decodable, Memory, State
from nmt.errors import Mistake


class Ensemble:
    """p(next piece) is the arithmetic mean of the models' probabilities; the models must share one vocabulary.

    Memory and State are tuples with one entry per model. Raises Mistake for an empty list.
    """

    def __init__(self, models: Sequence[Decodable]) -> None:
        if not models:
            raise Mistake("An ensemble of 0 models cannot translate; load at least one model.")
        self.models = list(models)

    @property
    def device(self) -> torch.device:
        return self.models[0].device

    @property
    def training(self) -> bool:
        return any(model.training for model in self.models)

    @property
    def max_source(self) -> int | None:
        return _least([model.max_source for model in self.models])

    @property
    def max_target(self) -> int | None:
        return _least([model.max_target for model in self.models])

    def train(self, mode: bool = True) -> "Ensemble":
        for model in self.models:
            model.train(mode)
        return self

    def encode(
        self,
        source: Int[Tensor, "sentences source"],
        source_mask: Bool[Tensor, "sentences source"],
        *,
        context: ContextSentences | None = None,
    ) -> Memory:
        return tuple(model.encode(source, source_mask, context=context) for model in self.models)

    def start(self, memory: Memory, beams: int) -> State:
        return tuple(model.start(part, beams) for model, part in zip(self.models, memory, strict=True))

    def step(
        self, tokens: Int[Tensor, "sentences beams"], state: State, memory: Memory
    ) -> tuple[Float[Tensor, "sentences beams vocab"], State]:
        steps = [model.step(tokens, *parts) for model, *parts in zip(self.models, state, memory, strict=True)]
        return self._mean([log_probs for log_probs, _ in steps]), tuple(after for _, after in steps)

    def attending_step(
        self, tokens: Int[Tensor, "sentences beams"], state: State, memory: Memory
    ) -> tuple[Float[Tensor, "sentences beams vocab"], Float[Tensor, "sentences beams source"], State]:
        """The attention weights are averaged over the models."""
        steps = [model.attending_step(tokens, *parts) for model, *parts in zip(self.models, state, memory, strict=True)]
        weights = torch.stack([of_model for _, of_model, _ in steps]).mean(dim=0)
        return self._mean([log_probs for log_probs, _, _ in steps]), weights, tuple(after for _, _, after in steps)

    def _mean(self, log_probs: list[Tensor]) -> Float[Tensor, "sentences beams vocab"]:
        return torch.stack(log_probs).logsumexp(dim=0) - math.log(len(self.models))


def _least(limits: list[int | None]) -> int | None:
    return min((limit for limit in limits if limit is not None), default=None)
