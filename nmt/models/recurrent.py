"""What recurrent models share: a decoder that reads one piece at a time."""

import math
from abc import abstractmethod
from collections import defaultdict
from functools import partial
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from nmt.attention import KeysValues, MultiHeadAttention, SingleHeadAttention, SiteWatch, VisibleKeys
from nmt.kernels.dropout import Dropout
from nmt.models.base import Annotations, Seq2Seq, SourceMask, Target, Watch
from nmt.models.embeddings import DIRECTION_STD, with_rows_of_length
from nmt.models.lstmn import WeightsByStep


class Memory(NamedTuple):
    """The annotations as keys and values, the source mask, and the decoder's initial State."""

    annotations: KeysValues
    mask: Bool[Tensor, "sentences source"]
    first: Any


class RecurrentSeq2Seq(Seq2Seq):
    """A model whose decoder reads one piece per beam in `advance`; whole sentences are decoded piece by piece."""

    source_embedding: nn.Embedding
    target_embedding: nn.Embedding
    attention: MultiHeadAttention | SingleHeadAttention
    embedding_dropout: Dropout

    def decode(
        self, target_input: Target, memory: Memory, watch: Watch | None = None
    ) -> Float[Tensor, "batch target width"]:
        embedded = self.embedding_dropout(self.target_embedding(target_input))
        state, results = self.start(memory, beams=1), []
        weights_by_step: dict[tuple[str, int], WeightsByStep] = defaultdict(WeightsByStep)

        def keep(site: str, layer: int, weights: Tensor, visible: VisibleKeys) -> None:
            weights_by_step[site, layer](weights, visible)

        for piece in embedded.split(1, dim=1):
            result, state = self.advance(piece, state, memory, keep if watch else None)
            results.append(result)
        if watch:
            for (site, layer), weights in weights_by_step.items():
                watch(site, layer, *weights.joined())
        return self.read_out(torch.cat(results, dim=1))

    def start(self, memory: Memory, beams: int) -> Any:
        return repeat_rows(memory.first, beams)

    def remember(self, annotations: Annotations, source_mask: SourceMask, first: Any) -> Memory:
        return Memory(self.attention.project(annotations), source_mask, first)

    def advance_features(
        self, tokens: Int[Tensor, "sentences beams"], state: Any, memory: Memory, watch: Watch | None = None
    ) -> tuple[Float[Tensor, "sentences beams width"], Any]:
        embedded = self.embedding_dropout(self.target_embedding(tokens))
        result, state = self.advance(embedded, state, memory, partial(_watch_cross, watch) if watch else None)
        return self.read_out(result), state

    def _fix_row_lengths(self, output: float) -> None:
        """FixNorm (Nguyen & Salazar 2019): fixes the norm of each row of the output layer to `output`.

        The rows of the embeddings get norm sqrt(embedding_dim), which is about the norm of vectors with N(0, 1)
        entries. The Transformer multiplies its unit vectors by the same factor.
        """
        tables = tuple(dict.fromkeys((self.source_embedding, self.target_embedding)))
        for module in (*tables, self.output):
            nn.init.normal_(module.weight, std=DIRECTION_STD)
        with_rows_of_length(*tables, length=math.sqrt(self.target_embedding.embedding_dim))
        with_rows_of_length(self.output, length=output)

    @abstractmethod
    def advance(
        self,
        embedded: Float[Tensor, "sentences beams embedding_dim"],
        state: Any,
        memory: Memory,
        watch: Watch | None = None,
    ) -> tuple[Float[Tensor, "sentences beams output_dim"], Any]:
        """Reads one piece per beam; returns the input of `read_out` and the new State."""

    @abstractmethod
    def read_out(self, results: Float[Tensor, "*rows output_dim"]) -> Float[Tensor, "*rows width"]:
        """The input to the output layer.

        This is separate from `advance` so that it can be computed for all time steps at once.
        """


def repeat_rows(state: Any, times: int) -> Any:
    """Repeats each row of a (nested) named tuple of tensors."""
    if isinstance(state, Tensor):
        return state.repeat_interleave(times, dim=0)
    parts = [repeat_rows(part, times) for part in state]
    return type(state)(*parts) if hasattr(state, "_fields") else tuple(parts)


def attend_to(
    attention: MultiHeadAttention | SingleHeadAttention,
    queries: Float[Tensor, "sentences beams query_dim"],
    position: Int[Tensor, " rows"],
    memory: Memory,
    watch: SiteWatch | None,
) -> Float[Tensor, "sentences beams encoder_dim"]:
    """The context for the query of each beam; `position` holds the target positions of the queries."""
    positions = position.view(queries.shape[:2])
    context: Tensor = attention(queries, memory.annotations, memory.mask[:, None, None, :], positions, watch)
    return context


def _watch_cross(watch: Watch, site: str, layer: int, weights: Tensor, visible: VisibleKeys) -> None:
    """Search observes cross attention only: a hypothesis's own past has no fixed number of keys."""
    if site == "cross":
        watch(site, layer, weights, visible)
