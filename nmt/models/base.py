"""The interface of all models: an encoder, a forward pass over whole sentences, and a single step for search."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from nmt.attention import Attention, VisibleKeys
from nmt.sites import SITES, Attended

Watch = Callable[[str, int, Tensor, VisibleKeys], None]
"""watch(site, layer, weights, visible) receives the weights (batch, heads, queries, keys) of each attention site and
the result of its window.

The sites are those of nmt.sites. Layers are counted from 0.
"""

Source = Int[Tensor, "batch source"]
SourceMask = Bool[Tensor, "batch source"]
Embedded = Float[Tensor, "batch source embedding_dim"]
Annotations = Float[Tensor, "batch source encoder_dim"]
Target = Int[Tensor, "batch target"]
Logits = Float[Tensor, "batch target vocab"]


@runtime_checkable
class ReadableContext(Protocol):
    """The part of a batch's context that a DocumentModel reads; see nmt.data.batch.ContextSentences."""

    @property
    def source(self) -> Int[Tensor, "rows source"]: ...

    @property
    def source_mask(self) -> Bool[Tensor, "rows source"]: ...

    @property
    def target_input(self) -> Int[Tensor, "rows target"]: ...

    @property
    def target_mask(self) -> Bool[Tensor, "rows target"]: ...

    @property
    def rows(self) -> Int[Tensor, "batch sentences"]: ...


class Attending(nn.Module, ABC):
    """A model with attention: a translation model, or an encoder alone."""

    queries: Mapping[str, str]
    """Describes the queries at each site that the class can have; sentence sites come before document sites."""

    recordable: ClassVar = False
    """Whether a GPU can repeat a recorded training step: what it computes depends only on the shapes of the batch."""

    @property
    @abstractmethod
    def sites(self) -> Mapping[str, Sequence[Attention]]:
        """The Attention modules of all layers, for each site that this model has, in the order of `queries`."""

    @property
    def sentence_sites(self) -> Mapping[str, Sequence[Attention]]:
        """The sites that are used when a sentence is processed without its document."""
        return self.sites

    @property
    def device(self) -> torch.device:
        """The device of the parameters."""
        return next(self.parameters()).device

    @property
    def max_source(self) -> int | None:
        """The largest number of source pieces that the model supports, including EOS; None if there is no limit."""
        return self._least_max_keys("source", "earlier source")

    @property
    def max_target(self) -> int | None:
        """The largest number of target pieces that the model supports, including EOS; None if there is no limit."""
        return self._least_max_keys("target", "earlier target")

    @property
    def max_context(self) -> int | None:
        """The largest number of earlier sentences that the model supports; None if there is no limit."""
        return self._least_max_keys("earlier sentences")

    def _least_max_keys(self, *columns: Attended) -> int | None:
        limits = (layers[0].max_keys for name, layers in self.sites.items() if SITES[name].columns in columns)
        return min((limit for limit in limits if limit is not None), default=None)


class Seq2Seq(Attending):
    """A model of p(target | source).

    Memory and State are (nested) tuples of tensors. Memory has one row per sentence and never changes; State has
    sentences x beams rows (row = sentence * beams + beam). `step` may overwrite the State that it receives.
    """

    source_embedding: nn.Embedding
    """The source embeddings; `encode` passes their vectors to `encode_embedded`."""

    annotation_dim: int
    """The width of the annotations."""

    output: nn.Linear
    """Maps the features that `decode` returns to logits.

    It is separate so that training can skip padding and need not store the logits.
    """

    def forward(
        self,
        source: Source,
        source_mask: SourceMask,
        target_input: Target,
        watch: Watch | None = None,
        context: ReadableContext | None = None,
    ) -> Logits:
        """Logits of each target piece given the pieces before it (teacher forcing)."""
        memory = self.encode(source, source_mask, watch, context)
        logits: Tensor = self.output(self.decode(target_input, memory, watch))
        return logits

    def encode(
        self,
        source: Source,
        source_mask: SourceMask,
        watch: Watch | None = None,
        context: ReadableContext | None = None,
    ) -> Any:
        """The Memory of the sources: projected keys and values, and the mask.

        `context` holds the sentences that precede the sources in their documents; only a DocumentModel reads them.
        """
        return self.encode_embedded(self.source_embedding(source), source_mask, watch, context)

    def encode_embedded(
        self,
        embedded: Embedded,
        source_mask: SourceMask,
        watch: Watch | None = None,
        context: ReadableContext | None = None,
    ) -> Any:
        """Like `encode`, but takes embeddings (before dropout) instead of ids.

        They need not be rows of `source_embedding`. Raises ValueError for a `context` that the model cannot read.
        """
        if context is not None:
            raise ValueError(f"{type(self).__name__} reads single sentences; use a DocumentModel for documents.")
        annotations, first = self.annotate(embedded, source_mask, watch)
        return self.remember(annotations, source_mask, first)

    @abstractmethod
    def annotate(
        self, embedded: Embedded, source_mask: SourceMask, watch: Watch | None = None
    ) -> tuple[Annotations, Any]:
        """The encoder's state at each source position, and whatever else the decoder needs to start."""

    @abstractmethod
    def remember(self, annotations: Annotations, source_mask: SourceMask, first: Any) -> Any:
        """The Memory, made from the results of `annotate`."""

    @abstractmethod
    def decode(
        self, target_input: Target, memory: Any, watch: Watch | None = None
    ) -> Float[Tensor, "batch target width"]:
        """The input to the output layer at each target position."""

    @abstractmethod
    def start(self, memory: Any, beams: int) -> Any:
        """The State before the first step."""

    @abstractmethod
    def advance_features(
        self, tokens: Int[Tensor, "sentences beams"], state: Any, memory: Any, watch: Watch | None = None
    ) -> tuple[Float[Tensor, "sentences beams width"], Any]:
        """Reads one more token per beam; returns the input to the output layer and the new State.

        `watch` receives the weights of cross attention, and of a DocumentModel's attention to earlier target sentences;
        the queries are the beams.
        """

    def step(
        self, tokens: Int[Tensor, "sentences beams"], state: Any, memory: Any, watch: Watch | None = None
    ) -> tuple[Float[Tensor, "sentences beams vocab"], Any]:
        """Like `advance_features`, but returns log p of each possible next piece, in nats, instead of the features."""
        features, state = self.advance_features(tokens, state, memory, watch)
        logits = self.output(features).float()
        # Without gradients, the logits are overwritten: large new tensors take a CPU as long as the computation.
        out = None if torch.is_grad_enabled() else logits
        return torch.log_softmax(logits, dim=-1, out=out), state

    def attending_step(
        self, tokens: Int[Tensor, "sentences beams"], state: Any, memory: Any
    ) -> tuple[Float[Tensor, "sentences beams vocab"], Float[Tensor, "sentences beams source"], Any]:
        """Like `step`, but also returns the last layer's cross attention weights, averaged over the heads."""
        cross: list[Tensor] = []

        def keep(site: str, layer: int, weights: Tensor, visible: VisibleKeys) -> None:
            if site == "cross":
                cross.append(weights)

        log_probs, state = self.step(tokens, state, memory, keep)
        return log_probs, cross[-1].mean(dim=1), state
