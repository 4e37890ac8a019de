"""The additive score on a GPU: Triton kernels that keep tanh(q + k) in registers, forward and backward.

The models use `nmt.kernels.additive_score`, which computes the formula in blocks on any device. On a GPU,
`benchmark attention` compares these kernels with it. triton comes with torch's CUDA builds; its interpreter
(TRITON_INTERPRET=1) runs the kernels on a CPU.
"""

from typing import Any, no_type_check

import torch
import triton
import triton.language as tl
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

BLOCKS = {"block_rows": 16, "block_columns": 32, "block_hidden": 16}
"""Rows and columns of the score matrix per program, and the part of the hidden width held at a time."""


@triton.jit
@no_type_check
def _tanh(x):
    return 2 * tl.sigmoid(2 * x) - 1


@triton.jit
@no_type_check
def _tile(pointer, rows, num_rows, columns, num_columns, row_stride, column_stride):
    """A (rows, columns) tile of a matrix in float32; 0 outside the matrix."""
    inside = (rows < num_rows)[:, None] & (columns < num_columns)[None, :]
    places = pointer + rows[:, None].to(tl.int64) * row_stride + columns[None, :].to(tl.int64) * column_stride
    return tl.load(places, mask=inside, other=0.0).to(tl.float32)


@triton.jit
@no_type_check
def _scores(
    queries, keys, vector, scores, heads, num_queries, num_keys, hidden,
    block_rows: tl.constexpr, block_columns: tl.constexpr, block_hidden: tl.constexpr,
):  # fmt: skip
    """One program per (sentence and head, block of queries, block of keys)."""
    site = tl.program_id(0).to(tl.int64)
    q = tl.program_id(1) * block_rows + tl.arange(0, block_rows)
    k = tl.program_id(2) * block_columns + tl.arange(0, block_columns)
    queries += site * num_queries * hidden
    keys += site * num_keys * hidden
    vector += site % heads * hidden
    total = tl.zeros((block_rows, block_columns), tl.float32)
    for first in range(0, hidden, block_hidden):
        d = first + tl.arange(0, block_hidden)
        v = tl.load(vector + d, mask=d < hidden, other=0.0).to(tl.float32)
        a = _tile(queries, q, num_queries, d, hidden, hidden, 1)
        b = _tile(keys, k, num_keys, d, hidden, hidden, 1)
        total += tl.sum(_tanh(a[:, None, :] + b[None, :, :]) * v[None, None, :], axis=2)
    inside = (q < num_queries)[:, None] & (k < num_keys)[None, :]
    places = scores + site * num_queries * num_keys + q[:, None].to(tl.int64) * num_keys + k[None, :]
    tl.store(places, total.to(scores.dtype.element_ty), mask=inside)


@triton.jit
@no_type_check
def _gradients(
    own, other, vector, grad, grad_own, grad_vector, heads, num_own, num_other, own_stride, other_stride, hidden,
    block_rows: tl.constexpr, block_columns: tl.constexpr, block_hidden: tl.constexpr,
):  # fmt: skip
    """The gradient of `own` (queries or keys: the score is symmetric in them) and its share of v's gradient.

    One program per (sentence and head, block of own rows, part of the hidden width); it loops over the other side.
    """
    site, block = tl.program_id(0).to(tl.int64), tl.program_id(1)
    rows = block * block_rows + tl.arange(0, block_rows)
    d = tl.program_id(2) * block_hidden + tl.arange(0, block_hidden)
    own += site * num_own * hidden
    other += site * num_other * hidden
    grad += site * num_own * num_other
    a = _tile(own, rows, num_own, d, hidden, hidden, 1)
    slope, share = tl.zeros((block_rows, block_hidden), tl.float32), tl.zeros((block_hidden,), tl.float32)
    for first in range(0, num_other, block_columns):
        columns = first + tl.arange(0, block_columns)
        t = _tanh(a[:, None, :] + _tile(other, columns, num_other, d, hidden, hidden, 1)[None, :, :])
        g = _tile(grad, rows, num_own, columns, num_other, own_stride, other_stride)[:, :, None]
        slope += tl.sum(g * (1 - t * t), axis=1)  # d tanh(x) / dx = 1 - tanh(x)^2
        share += tl.sum(tl.sum(g * t, axis=1), axis=0)
    v = tl.load(vector + site % heads * hidden + d, mask=d < hidden, other=0.0).to(tl.float32)
    inside = (rows < num_own)[:, None] & (d < hidden)[None, :]
    places = grad_own + site * num_own * hidden + rows[:, None].to(tl.int64) * hidden + d[None, :]
    tl.store(places, slope * v[None, :], mask=inside)
    tl.store(grad_vector + (site * tl.num_programs(1) + block) * hidden + d, share, mask=d < hidden)


class TritonAdditiveScore(torch.autograd.Function):
    """score(q, k) = v . tanh(q + k), computed in float32; backward recomputes tanh(q + k)."""

    @staticmethod
    def forward(ctx: Any, queries: Tensor, keys: Tensor, vector: Tensor) -> Tensor:
        queries, keys, vector = queries.contiguous(), keys.contiguous(), vector.contiguous()
        ctx.save_for_backward(queries, keys, vector)
        batch, heads, num_queries, hidden = queries.shape
        num_keys = keys.shape[2]
        scores = queries.new_empty(batch, heads, num_queries, num_keys)
        if scores.numel():
            rows, columns = (
                triton.cdiv(num_queries, BLOCKS["block_rows"]),
                triton.cdiv(num_keys, BLOCKS["block_columns"]),
            )
            sizes = heads, num_queries, num_keys, hidden
            _scores[(batch * heads, rows, columns)](queries, keys, vector, scores, *sizes, **BLOCKS)
        return scores

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        queries, keys, vector = ctx.saved_tensors
        grad = grads[0].contiguous()
        num_keys = grad.shape[3]
        grad_queries, grad_vector = _gradient(queries, keys, vector, grad, (num_keys, 1))
        grad_keys, _ = _gradient(keys, queries, vector, grad, (1, num_keys))
        found = grad_queries, grad_keys, grad_vector
        return tuple(g.to(x.dtype) for g, x in zip(found, ctx.saved_tensors, strict=True))  # type: ignore[return-value]


def _gradient(
    own: Tensor, other: Tensor, vector: Tensor, grad: Tensor, strides: tuple[int, int]
) -> tuple[Tensor, Tensor]:
    """The gradients of `own` and the vector in float32; `strides` are those of grad along own and other rows."""
    batch, heads, num_own, hidden = own.shape
    blocks, parts = triton.cdiv(num_own, BLOCKS["block_rows"]), triton.cdiv(hidden, BLOCKS["block_hidden"])
    grad_own = torch.empty_like(own, dtype=torch.float32)
    # One share per program, summed afterwards: atomic sums would differ from run to run.
    shares = own.new_empty(batch, heads, blocks, hidden, dtype=torch.float32)
    if own.numel():
        sizes = heads, num_own, other.shape[2], *strides, hidden
        _gradients[(batch * heads, blocks, parts)](own, other, vector, grad, grad_own, shares, *sizes, **BLOCKS)
    return grad_own, shares.sum(dim=(0, 2))


def triton_additive_score(
    queries: Float[Tensor, "batch heads queries hidden"],
    keys: Float[Tensor, "batch heads keys hidden"],
    vector: Float[Tensor, "heads hidden"],
) -> Float[Tensor, "batch heads queries keys"]:
    """v . tanh(q + k) for every query and key, computed in float32."""
    scores: Tensor = TritonAdditiveScore.apply(queries, keys.to(queries.dtype), vector.to(queries.dtype))
    return scores
