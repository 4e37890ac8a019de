"""The two computations that want care: the additive score without its big tensor, and the fused inner product."""

from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

BLOCK = {"cpu": 2**19, "cuda": 2**26}
"""How many numbers of the additive score's big tensor exist at a time: on the CPU as many as its cache holds."""


class AdditiveScore(torch.autograd.Function):
    """score(q, k) = v . tanh(q + k) for projected q and k (Bahdanau et al. 2015, appendix A.1.2).

    tanh(q + k) is (batch, heads, queries, keys, hidden); it exists block by block, and backward computes it again.
    It is computed as tanh(x) = 2 sigmoid(2x) - 1, because torch's sigmoid takes a third of its tanh's time on the CPU.
    """

    @staticmethod
    def forward(ctx: Any, queries: Tensor, keys: Tensor, vector: Tensor) -> Tensor:
        ctx.save_for_backward(queries, keys, vector)
        scores = queries.new_empty(*queries.shape[:3], keys.shape[2])
        for rows, some in _blocks(queries, keys):
            hidden = _sigmoid_of_double(queries[rows, :, some], keys[rows])
            scores[rows, :, some] = hidden.mul_(vector[:, None, None]).sum(dim=-1)
        return scores.mul_(2).sub_(vector.sum(dim=-1)[:, None, None])

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        queries, keys, vector = ctx.saved_tensors
        grad = grads[0].to(queries.dtype)
        grad_queries, grad_keys = torch.empty_like(queries), torch.zeros_like(keys)
        grad_vector = -grad.sum(dim=(0, 2, 3))[:, None].expand_as(vector).clone()
        for rows, some in _blocks(queries, keys):
            outer = grad[rows, :, some].unsqueeze(-2)
            hidden = _sigmoid_of_double(queries[rows, :, some], keys[rows])
            grad_vector += 2 * (outer.flatten(2).unsqueeze(-2) @ hidden.flatten(2, 3)).sum(dim=0).squeeze(-2)
            hidden.addcmul_(hidden, hidden, value=-1)  # d tanh(x) / dx = 4 sigmoid(2x) (1 - sigmoid(2x))
            grad_queries[rows, :, some] = (outer @ hidden).squeeze(-2)
            grad_keys[rows] += hidden.mul_(outer.transpose(-2, -1)).sum(dim=2)
        slope = 4 * vector[:, None]
        return grad_queries.mul_(slope), grad_keys.mul_(slope), grad_vector


def _sigmoid_of_double(queries: Tensor, keys: Tensor) -> Tensor:
    """sigmoid(2 (q + k)) of every pair: (batch, heads, queries, keys, hidden)."""
    return (2 * queries).unsqueeze(3).add((2 * keys).unsqueeze(2)).sigmoid_()


def _blocks(queries: Tensor, keys: Tensor) -> Iterator[tuple[slice, slice]]:
    """Sentences and queries whose pairs with all keys make about BLOCK numbers."""
    batch, heads, length, hidden = queries.shape
    of_a_query = max(1, heads * keys.shape[2] * hidden)
    fitting = max(1, BLOCK.get(queries.device.type, BLOCK["cuda"]) // of_a_query)
    sentences, some = max(1, fitting // max(1, length)), min(fitting, max(1, length))
    for row in range(0, batch, sentences):
        for query in range(0, length, some):
            yield slice(row, row + sentences), slice(query, query + some)


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
