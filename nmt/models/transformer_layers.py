"""The Transformer's layers (Vaswani et al. 2017, sections 3.1 to 3.3)."""

import math
from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from nmt.attention import Attention, KeysValues, MultiHeadAttention, SiteWatch
from nmt.kernels.casts import cast_for_products, cast_residual
from nmt.kernels.dropout import Dropout
from nmt.kernels.feed_forward import feed_forward
from nmt.models.base import Watch
from nmt.models.embeddings import sinusoids

Inputs = Float[Tensor, "batch n dim"]
Mask = Bool[Tensor, "..."]
Norm = Callable[[int], nn.Module]
"""norm(dim) is a normalization layer for vectors of width dim; see nmt.models.norms."""


class Dropouts(NamedTuple):
    """Dropout probabilities of the sums of embeddings and position encodings (section 5.4), the attention weights, the
    inner layer of the feed-forward net, and the output of each sub-layer before it is added to the input (section 5.4).
    """

    embedding: float
    attention: float
    ffn: float
    residual: float


class Sublayer(nn.Module):
    """norm(x + dropout(f(x))), the paper's residual connection around f, or x + dropout(f(norm(x))) with pre-norm."""

    def __init__(self, norm: Norm, dim: int, dropout: float, norm_first: bool) -> None:
        super().__init__()
        self.norm = norm(dim)
        self.dropout = Dropout(dropout)
        self.norm_first = norm_first

    def before(self, x: Inputs) -> Inputs:
        """The input of the sub-layer."""
        return cast_for_products(self.norm(x) if self.norm_first else x)

    def after(self, x: Inputs, result: Inputs) -> Inputs:
        """The residual connection: adds the sub-layer's result to x and, with post-norm, normalizes the sum."""
        x = x + self.dropout(result)
        return x if self.norm_first else self.norm(x)


class FeedForward(nn.Module):
    """FFN(x) = max(0, x W1 + b1) W2 + b2 at each position (section 3.3)."""

    def __init__(self, dim: int, ffn_dim: int, dropout: float) -> None:
        super().__init__()
        self.inner = nn.Linear(dim, ffn_dim)
        self.outer = nn.Linear(ffn_dim, dim)
        self.dropout = Dropout(dropout)

    def forward(self, x: Inputs) -> Inputs:
        return feed_forward(x, self.inner, self.outer, self.dropout)


class EncoderLayer(nn.Module):
    """Self-attention, then the feed-forward net."""

    def __init__(
        self,
        self_attention: Callable[..., Attention],
        norm: Norm,
        dim: int,
        ffn_dim: int,
        num_heads: int,
        dropouts: Dropouts,
        norm_first: bool,
    ) -> None:
        super().__init__()
        self.attention = MultiHeadAttention(self_attention, dim, dim, num_heads, dropouts.attention)
        self.feed_forward = FeedForward(dim, ffn_dim, dropouts.ffn)
        self.around_attention, self.around_ffn = (Sublayer(norm, dim, dropouts.residual, norm_first) for _ in range(2))

    def forward(self, x: Inputs, mask: Mask, watch: SiteWatch | None = None) -> Inputs:
        inputs = self.around_attention.before(x)
        x = self.around_attention.after(x, self.attention(inputs, self.attention.project(inputs), mask, watch=watch))
        return self.around_ffn.after(x, self.feed_forward(self.around_ffn.before(x)))


class DecoderLayer(nn.Module):
    """Self-attention over the pieces so far, cross attention over the source, then the feed-forward net.

    The three steps are separate methods, because their queries have different shapes in search: in self-attention, each
    row has one query; in cross attention, the beams of a sentence are the queries.
    """

    def __init__(
        self,
        self_attention: Callable[..., Attention],
        cross: Callable[..., Attention],
        norm: Norm,
        dim: int,
        ffn_dim: int,
        num_heads: int,
        dropouts: Dropouts,
        norm_first: bool,
    ) -> None:
        super().__init__()
        self.attention = MultiHeadAttention(self_attention, dim, dim, num_heads, dropouts.attention)
        self.cross = MultiHeadAttention(cross, dim, dim, num_heads, dropouts.attention)
        self.feed_forward = FeedForward(dim, ffn_dim, dropouts.ffn)
        self.around_attention, self.around_cross, self.around_ffn = (
            Sublayer(norm, dim, dropouts.residual, norm_first) for _ in range(3)
        )

    def keys_values(self, inputs: Inputs) -> KeysValues:
        """The self-attention's keys and values of `inputs`."""
        return self.attention.project(inputs)

    def self_attend(
        self, x: Inputs, inputs: Inputs, kept: KeysValues, mask: Mask, watch: SiteWatch | None = None
    ) -> Inputs:
        return self.around_attention.after(x, self.attention(inputs, kept, mask, watch=watch))

    def cross_attend(
        self,
        x: Inputs,
        memory: KeysValues,
        mask: Mask,
        positions: Int[Tensor, "#batch n"],
        watch: SiteWatch | None = None,
    ) -> Inputs:
        return self.around_cross.after(x, self.cross(self.around_cross.before(x), memory, mask, positions, watch))

    def apply_feed_forward(self, x: Inputs) -> Inputs:
        return self.around_ffn.after(x, self.feed_forward(self.around_ffn.before(x)))


def final_norm(norm: Norm, dim: int, norm_first: bool) -> nn.Module:
    """The norm at the end of a stack, which only pre-norm needs; the identity with post-norm."""
    return norm(dim) if norm_first else nn.Identity()


def with_positions(embedded: Inputs, positions: Int[Tensor, "*batch n"], dropout: Dropout) -> Inputs:
    """dropout(sqrt(dim) E x + PE), the input of a stack (sections 3.4 and 3.5)."""
    dim = embedded.shape[-1]
    scaled = embedded * math.sqrt(dim)
    return cast_residual(dropout(scaled + sinusoids(positions, dim).to(scaled.dtype)))


def encoded(
    x: Inputs, source_mask: Bool[Tensor, "batch n"], layers: Iterable[nn.Module], norm: nn.Module, watch: Watch | None
) -> Inputs:
    """The output of a stack of EncoderLayers, after its final norm."""
    mask = source_mask[:, None, None, :]
    for index, layer in enumerate(layers):
        x = layer(x, mask, watch and partial(watch, "encoder_self", index))
    return cast_for_products(norm(x))
