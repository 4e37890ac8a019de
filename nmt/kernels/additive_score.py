"""The additive score, computed in blocks to save memory and to make use of the CPU's cache."""

from collections.abc import Iterator
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

BLOCK = {"cpu": 2**19, "cuda": 2**26}
"""Largest number of elements of tanh(q + k) in memory at a time, unless a single query has more.

On the CPU, a block of this size fits into the cache.
"""


class AdditiveScore(torch.autograd.Function):
    """score(q, k) = v . tanh(q + k) for projected q and k (Bahdanau et al. 2015, appendix A.1.2).

    tanh(q + k) has the shape (batch, heads, queries, keys, hidden). It is computed in blocks, in at least float32, and
    recomputed in the backward pass. tanh(x) is computed as 2 sigmoid(2x) - 1.
    """

    @staticmethod
    def forward(ctx: Any, queries: Tensor, keys: Tensor, vector: Tensor) -> Tensor:
        ctx.save_for_backward(queries, keys, vector)
        v = _at_least_float32(vector)
        scores = queries.new_empty(*queries.shape[:3], keys.shape[2])
        for sentences, steps, hidden in _sigmoids(queries, keys):
            total = hidden.mul_(v[:, None, None]).sum(dim=-1)
            scores[sentences, :, steps] = total.mul_(2).sub_(v.sum(dim=-1)[:, None, None])
        return scores

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        queries, keys, vector = ctx.saved_tensors
        grad, v = _at_least_float32(grads[0]), _at_least_float32(vector)
        grad_queries, grad_keys = torch.empty_like(queries, dtype=v.dtype), torch.zeros_like(keys, dtype=v.dtype)
        grad_vector = -grad.sum(dim=(0, 2, 3))[:, None].expand_as(v).clone()
        for sentences, steps, hidden in _sigmoids(queries, keys):
            weights = grad[sentences, :, steps].unsqueeze(-2)
            grad_vector += 2 * (weights.flatten(2).unsqueeze(-2) @ hidden.flatten(2, 3)).sum(dim=0).squeeze(-2)
            hidden.addcmul_(hidden, hidden, value=-1)  # d tanh(x) / dx = 4 sigmoid(2x) (1 - sigmoid(2x))
            grad_queries[sentences, :, steps] = (weights @ hidden).squeeze(-2)
            grad_keys[sentences] += hidden.mul_(weights.transpose(-2, -1)).sum(dim=2)
        slope = 4 * v[:, None]
        gradients = grad_queries.mul_(slope), grad_keys.mul_(slope), grad_vector
        return tuple(g.to(x.dtype) for g, x in zip(gradients, ctx.saved_tensors, strict=True))  # type: ignore[return-value]


def blocks(
    queries: Float[Tensor, "batch heads queries hidden"], keys: Float[Tensor, "batch heads keys hidden"]
) -> Iterator[tuple[slice, slice]]:
    """Slices of sentences and of queries: whole sentences if they fit into BLOCK elements, else parts of a sentence."""
    batch, heads, length, hidden = queries.shape
    fitting = max(1, BLOCK.get(queries.device.type, BLOCK["cuda"]) // max(1, heads * keys.shape[2] * hidden))
    sentences, steps = max(1, fitting // max(1, length)), min(fitting, max(1, length))
    for sentence in range(0, batch, sentences):
        for step in range(0, length, steps):
            yield slice(sentence, sentence + sentences), slice(step, step + steps)


def _at_least_float32(x: Tensor) -> Tensor:
    return x.to(torch.promote_types(x.dtype, torch.float32))


def _sigmoids(queries: Tensor, keys: Tensor) -> Iterator[tuple[slice, slice, Tensor]]:
    """The slices of each block and its sigmoid(2 (q + k)), of shape (sentences, heads, queries, keys, hidden).

    All blocks share one buffer, because on the CPU allocating memory takes longer than the computation. The caller may
    overwrite the buffer.
    """
    twice_queries, all_keys = 2 * _at_least_float32(queries).unsqueeze(3), _at_least_float32(keys).unsqueeze(2)
    memory: Tensor | None = None
    for sentences, steps in blocks(queries, keys):
        q, k = twice_queries[sentences, :, steps], all_keys[sentences]
        if memory is None:
            memory = q.new_empty(*q.shape[:3], *k.shape[3:])
        # On the CPU, torch's sigmoid takes a third as long as its tanh.
        doubled = torch.add(q, k, alpha=2, out=memory[: q.shape[0], :, : q.shape[2]])
        yield sentences, steps, doubled.sigmoid_()


def additive_score(
    queries: Float[Tensor, "batch heads queries hidden"],
    keys: Float[Tensor, "batch heads keys hidden"],
    vector: Float[Tensor, "heads hidden"],
) -> Float[Tensor, "batch heads queries keys"]:
    """v . tanh(q + k) for every query and key, where v is the head's row of `vector`.

    An exported graph computes all scores at once, because the number of blocks depends on the sizes.
    """
    if torch.compiler.is_exporting():
        return torch.tanh(queries.unsqueeze(3) + keys.unsqueeze(2)).matmul(vector[:, None, :, None]).squeeze(-1)
    scores: Tensor = AdditiveScore.apply(queries, keys.to(queries.dtype), vector.to(queries.dtype))
    return scores
