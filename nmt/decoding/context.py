"""A model for search that reads each source together with the sentences before it in its document."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from nmt.data.batch import ContextSentences
from nmt.decoding.state import Decodable, Memory, State


class InContext:
    """A model with the context of one batch; `encode` adds the context, and the model does everything else."""

    def __init__(self, model: Decodable, context: ContextSentences) -> None:
        self.model, self.context = model, context

    @property
    def device(self) -> torch.device:
        return self.model.device

    @property
    def training(self) -> bool:
        return self.model.training

    @property
    def max_source(self) -> int | None:
        return self.model.max_source

    @property
    def max_target(self) -> int | None:
        return self.model.max_target

    def train(self, mode: bool = True) -> "InContext":
        self.model.train(mode)
        return self

    def encode(
        self,
        source: Int[Tensor, "sentences source"],
        source_mask: Bool[Tensor, "sentences source"],
        *,
        context: ContextSentences | None = None,
    ) -> Memory:
        return self.model.encode(source, source_mask, context=self.context if context is None else context)

    def start(self, memory: Memory, beams: int) -> State:
        return self.model.start(memory, beams)

    def step(
        self, tokens: Int[Tensor, "sentences beams"], state: State, memory: Memory
    ) -> tuple[Float[Tensor, "sentences beams vocab"], State]:
        return self.model.step(tokens, state, memory)

    def attending_step(
        self, tokens: Int[Tensor, "sentences beams"], state: State, memory: Memory
    ) -> tuple[Float[Tensor, "sentences beams vocab"], Float[Tensor, "sentences beams source"], State]:
        return self.model.attending_step(tokens, state, memory)
