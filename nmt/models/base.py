"""The interface of all models: an encoder, a forward pass over whole sentences, and a single step for search."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from nmt.attention import Attention, View

Watch = Callable[[str, int, Tensor, View], None]
"""watch(site, layer, weights, view) receives the weights (batch, heads, queries, keys) of each attention site and the
View of its window.

The sites are encoder_self, decoder_self and cross; layers count from 0.
"""

Source = Int[Tensor, "batch source"]
SourceMask = Bool[Tensor, "batch source"]
Embedded = Float[Tensor, "batch source embedding_dim"]
Target = Int[Tensor, "batch target"]
Logits = Float[Tensor, "batch target vocab"]


class Attending(nn.Module, ABC):
    """A model with attention: a translation model, or an encoder alone."""

    queries: ClassVar[Mapping[str, str]]
    """The queries, in words, of each site that the class can have, in the order in which a sentence reaches them."""

    @property
    @abstractmethod
    def sites(self) -> Mapping[str, Sequence[Attention]]:
        """The attention of each layer at each site that this model has, in the order of `queries`."""

    @property
    def device(self) -> torch.device:
        """The device of the parameters."""
        return next(self.parameters()).device

    @property
    def max_source(self) -> int | None:
        """The largest number of source pieces, including EOS; None if there is no limit."""
        return self._least("encoder_self", "cross")

    @property
    def max_target(self) -> int | None:
        """The largest number of target pieces, including EOS; None if there is no limit."""
        return self._least("decoder_self")

    def _least(self, *sites: str) -> int | None:
        limits = (layers[0].max_keys for site, layers in self.sites.items() if site in sites)
        return min((limit for limit in limits if limit is not None), default=None)


class Seq2Seq(Attending):
    """A model of p(target | source).

    Memory and State are NamedTuples of tensors. Memory has one row per sentence and never changes; State has
    sentences x beams rows (row = sentence * beams + beam). `step` may overwrite the State that it receives.
    """

    source_embedding: nn.Embedding
    """The vectors of the source pieces, which `encode_embedded` reads."""

    output: nn.Linear
    """Maps the features of `decode` to logits. It is separate so that training can skip padding and store no logits."""

    def forward(
        self, source: Source, source_mask: SourceMask, target_input: Target, watch: Watch | None = None
    ) -> Logits:
        """Logits of each target piece given the pieces before it (teacher forcing)."""
        logits: Tensor = self.output(self.decode(target_input, self.encode(source, source_mask, watch), watch))
        return logits

    def encode(self, source: Source, source_mask: SourceMask, watch: Watch | None = None) -> Any:
        """The Memory of the sources: projected keys and values, and the mask."""
        return self.encode_embedded(self.source_embedding(source), source_mask, watch)

    @abstractmethod
    def encode_embedded(self, embedded: Embedded, source_mask: SourceMask, watch: Watch | None = None) -> Any:
        """The Memory of the rows of `source_embedding`, or of other vectors in their place, before dropout."""

    @abstractmethod
    def decode(
        self, target_input: Target, memory: Any, watch: Watch | None = None
    ) -> Float[Tensor, "batch target width"]:
        """The input of the output layer at each target position."""

    @abstractmethod
    def start(self, memory: Any, beams: int) -> Any:
        """The State before the first step."""

    @abstractmethod
    def step(
        self, tokens: Int[Tensor, "sentences beams"], state: Any, memory: Any, watch: Watch | None = None
    ) -> tuple[Float[Tensor, "sentences beams vocab"], Any]:
        """Reads one more token per beam; returns log p of each next piece, in nats, and the new State.

        `watch` receives the cross attention; its queries are the beams.
        """

    def attending_step(
        self, tokens: Int[Tensor, "sentences beams"], state: Any, memory: Any
    ) -> tuple[Float[Tensor, "sentences beams vocab"], Float[Tensor, "sentences beams source"], Any]:
        """The same as `step`, plus the last layer's cross attention weights, averaged over the heads."""
        seen: list[Tensor] = []
        log_probs, state = self.step(tokens, state, memory, lambda site, layer, weights, view: seen.append(weights))
        return log_probs, seen[-1].mean(dim=1), state
