"""The two computations that want care: the additive score without its big tensor, and the fused inner product."""

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor


class AdditiveScore(torch.autograd.Function):
    """score(q, k) = v . tanh(q + k) for projected q and k (Bahdanau et al. 2015, appendix A.1.2).

    tanh(q + k) is (batch, heads, queries, keys, hidden); backward computes it again instead of keeping it.
    """

    @staticmethod
    def forward(ctx: Any, queries: Tensor, keys: Tensor, vector: Tensor) -> Tensor:
        ctx.save_for_backward(queries, keys, vector)
        hidden = torch.tanh(queries.unsqueeze(3) + keys.unsqueeze(2))
        return torch.einsum("bhqkd,hd->bhqk", hidden, vector)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        queries, keys, vector = ctx.saved_tensors
        grad = grads[0].to(queries.dtype)
        hidden = torch.tanh(queries.unsqueeze(3) + keys.unsqueeze(2))
        grad_vector = torch.einsum("bhqk,bhqkd->hd", grad, hidden)
        slope = hidden.square_().neg_().add_(1)  # d tanh(x) / dx = 1 - tanh(x)^2
        v = vector[:, None]
        grad_queries = torch.einsum("bhqk,bhqkd->bhqd", grad, slope) * v
        grad_keys = torch.einsum("bhqk,bhqkd->bhkd", grad, slope) * v
        return grad_queries, grad_keys, grad_vector


def additive_score(
    queries: Float[Tensor, "batch heads queries hidden"],
    keys: Float[Tensor, "batch heads keys hidden"],
    vector: Float[Tensor, "heads hidden"],
) -> Float[Tensor, "batch heads queries keys"]:
    """v . tanh(q + k) for every query and key, with one v per head."""
    scores: Tensor = AdditiveScore.apply(queries, keys.to(queries.dtype), vector.to(queries.dtype))
    return scores


def prefers_fused(queries: Tensor) -> bool:
    """Whether the fused inner-product kernel wins: on a GPU yes; on the CPU its backward is slower than the formula."""
    return queries.is_cuda


def inner_product_context(
    queries: Float[Tensor, "batch heads queries dim"],
    keys: Float[Tensor, "batch heads keys dim"],
    values: Float[Tensor, "batch heads keys value_dim"],
    mask: Bool[Tensor, "..."],
    dropout: float,
) -> Float[Tensor, "batch heads queries value_dim"]:
    """softmax(q . k) v through torch's fused kernel; a query with nothing allowed gets zeros."""
    context = F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask, dropout_p=dropout, scale=1.0)
    # Some kernels give NaN for a query with nothing allowed, and NaN times 0 is NaN.
    return context.masked_fill(~mask.any(dim=-1, keepdim=True), 0)
