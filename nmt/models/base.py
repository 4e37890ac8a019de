"""What every model is: an encoder, a whole-sentence forward for training, and one step for search."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from nmt.attention import Attention, View

Watch = Callable[[str, int, Tensor, View], None]
"""watch(site, layer, weights, view) is shown the weights (batch, heads, queries, keys) of each attention site, and what
its window left of the keys.

Sites are called encoder_self, decoder_self and cross; layers count from 0.
"""

Source = Int[Tensor, "batch source"]
SourceMask = Bool[Tensor, "batch source"]
Target = Int[Tensor, "batch target"]
Logits = Float[Tensor, "batch target vocab"]


class Seq2Seq(nn.Module, ABC):
    """A model of p(target | source).

    Memory and State are NamedTuples of tensors: Memory has a row per sentence and never changes, State has
    sentences x beams rows (row = sentence * beams + beam). After `step` the old State may not be used.
    """

    queries: ClassVar[Mapping[str, str]]
    """Who asks, and when, for each attention site in the order in which a sentence reaches them."""

    output: nn.Linear
    """From `decode`'s features to logits; apart, so that training can leave out padding and keep no logits."""

    @property
    @abstractmethod
    def sites(self) -> Mapping[str, Sequence[Attention]]:
        """Each layer's attention at each site that `queries` names."""

    @property
    def device(self) -> torch.device:
        """The device of the parameters."""
        return next(self.parameters()).device

    @property
    def max_source(self) -> int | None:
        """The most source pieces, EOS counted, that can be attended to; None where there is no limit."""
        return self._least("encoder_self", "cross")

    @property
    def max_target(self) -> int | None:
        """The most target pieces, EOS counted, that can be attended to; None where there is no limit."""
        return self._least("decoder_self")

    def _least(self, *sites: str) -> int | None:
        limits = (layers[0].max_keys for site, layers in self.sites.items() if site in sites)
        return min((limit for limit in limits if limit is not None), default=None)

    def forward(
        self, source: Source, source_mask: SourceMask, target_input: Target, watch: Watch | None = None
    ) -> Logits:
        """Logits of every next piece, the pieces before it given (teacher forcing)."""
        logits: Tensor = self.output(self.decode(target_input, self.encode(source, source_mask, watch), watch))
        return logits

    @abstractmethod
    def encode(self, source: Source, source_mask: SourceMask, watch: Watch | None = None) -> Any:
        """The Memory of the sources: keys, values and mask, projected once."""

    @abstractmethod
    def decode(
        self, target_input: Target, memory: Any, watch: Watch | None = None
    ) -> Float[Tensor, "batch target width"]:
        """What the output layer reads after each of the target's positions."""

    @abstractmethod
    def start(self, memory: Any, beams: int) -> Any:
        """The State before the first step."""

    @abstractmethod
    def step(
        self, tokens: Int[Tensor, "sentences beams"], state: Any, memory: Any, watch: Watch | None = None
    ) -> tuple[Float[Tensor, "sentences beams vocab"], Any]:
        """log p of each next piece in nats, after reading one more token per beam, and the new State.

        `watch` is shown what the beams, as queries, attend to in the source.
        """

    def attending_step(
        self, tokens: Int[Tensor, "sentences beams"], state: Any, memory: Any
    ) -> tuple[Float[Tensor, "sentences beams vocab"], Float[Tensor, "sentences beams source"], Any]:
        """`step`, and between its results the cross weights of the last layer, mean of the heads."""
        seen: list[Tensor] = []
        log_probs, state = self.step(tokens, state, memory, lambda site, layer, weights, view: seen.append(weights))
        return log_probs, seen[-1].mean(dim=1), state
