"""The softmax over the keys that a mask allows, and its gradient."""

from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.autograd.function import once_differentiable

_LONG = 32
"""For rows shorter than this, torch's 16-bit softmax on the CPU is several times slower than its float32 softmax."""


def masked_softmax(
    scores: Float[Tensor, "*batch queries keys"], mask: Bool[Tensor, "..."]
) -> Float[Tensor, "*batch queries keys"]:
    """Softmax over the allowed keys of each query; `mask` (True = may attend) broadcasts to the scores.

    Blocked keys get weight 0, and a query without allowed keys gets zeros. On the CPU the weights have the dtype of the
    scores, elsewhere at least float32, as with autocast on a GPU. Second derivatives are not supported.
    """
    if not torch.is_grad_enabled():  # a call of an autograd function takes as long as a small softmax
        return _result(_weights(scores, mask), scores)
    weights: Tensor = MaskedSoftmax.apply(scores, mask)
    return weights


class MaskedSoftmax(torch.autograd.Function):
    """a = softmax(scores) over the allowed keys; d loss / d score_i = a_i (g_i - sum_j a_j g_j) with g = d loss / d a.

    Blocked scores become the lowest finite number, not minus infinity, so that a row without allowed keys stays finite.
    Multiplying by the mask then turns the uniform weights of such a row into zeros.
    """

    @staticmethod
    def forward(ctx: Any, scores: Tensor, mask: Tensor) -> Tensor:
        weights = _weights(scores, mask)
        ctx.save_for_backward(weights)
        return _result(weights, scores)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        [weights] = ctx.saved_tensors
        # autograd casts the result to the dtype of the scores.
        return torch._softmax_backward_data(grads[0].to(weights.dtype), weights, -1, weights.dtype), None


def _weights(scores: Tensor, mask: Tensor) -> Tensor:
    """The weights in the dtype in which they are computed."""
    # The size is read last, because reading it makes an exported graph valid for this size only.
    keep_dtype = scores.dtype.itemsize > 2 or (scores.device.type == "cpu" and scores.shape[-1] >= _LONG)
    dtype = scores.dtype if keep_dtype else torch.promote_types(scores.dtype, torch.float32)
    lowest = torch.finfo(dtype).min
    if keep_dtype and not torch.compiler.is_exporting():
        weights = torch.where(mask, scores, lowest)  # one operation, not three
    else:  # an exported graph would be valid only for sizes that let the scores be as large as the mask
        weights = scores.to(dtype, copy=True)
        weights.masked_fill_(~mask, lowest)
    return torch.softmax(weights, dim=-1, out=weights).mul_(mask)


def _result(weights: Tensor, scores: Tensor) -> Tensor:
    """The weights in the dtype that `masked_softmax` returns."""
    same = weights.dtype == scores.dtype or scores.device.type != "cpu"
    return weights if same else weights.to(scores.dtype)
