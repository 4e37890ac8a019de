"""The Transformer's layers (Vaswani et al. 2017, sections 3.1 to 3.3) and the cache of what a decoder has read."""

from collections.abc import Callable
from typing import NamedTuple

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from nmt.attention import Attention, KeysValues, MultiHeadAttention, SiteWatch
from nmt.kernels.casts import cast_for_products
from nmt.kernels.dropout import Dropout
from nmt.kernels.feed_forward import feed_forward

Inputs = Float[Tensor, "batch n dim"]
Mask = Bool[Tensor, "..."]
Norm = Callable[[int], nn.Module]
"""norm(dim) is a module that keeps the lengths of vectors of that width in bounds: nmt.models.norms."""


class Dropouts(NamedTuple):
    """The probability of dropout at each place: embeddings with their positions (section 5.4), attention weights, the
    inner layer of the feed-forward net, and the result of each sub-layer before it is added (section 5.4).
    """

    embedding: float
    attention: float
    ffn: float
    residual: float


class Sublayer(nn.Module):
    """The residual connection around a sub-layer f: x + dropout(f(norm(x))), or the paper's norm(x + dropout(f(x)))."""

    def __init__(self, norm: Norm, dim: int, dropout: float, norm_first: bool) -> None:
        super().__init__()
        self.norm = norm(dim)
        self.dropout = Dropout(dropout)
        self.norm_first = norm_first

    def before(self, x: Inputs) -> Inputs:
        """What the sub-layer sees of x."""
        return cast_for_products(self.norm(x) if self.norm_first else x)

    def after(self, x: Inputs, result: Inputs) -> Inputs:
        """x with the sub-layer's result added."""
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

    The three are separate steps, because in search the queries of self-attention are rows and those of cross attention
    the beams of a sentence.
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
        """What the self-attention keeps of positions, of which it sees `inputs`."""
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
    """The norm that ends a stack: pre-norm needs one more, post-norm has had it."""
    return norm(dim) if norm_first else nn.Identity()
