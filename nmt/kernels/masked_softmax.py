"""The softmax over the keys that a mask allows, with its gradient."""

from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.autograd.function import once_differentiable

_LONG = 32
"""On a CPU torch's softmax in 16 bits is several times as slow over rows shorter than this as in float32."""


def masked_softmax(
    scores: Float[Tensor, "*batch queries keys"], mask: Bool[Tensor, "..."]
) -> Float[Tensor, "*batch queries keys"]:
    """Softmax over the allowed keys of each query; `mask` (True = may attend) broadcasts to the scores.

    The weights have the type of the scores on a CPU, elsewhere float32 at least, as autocast's softmax on a GPU. They
    can be differentiated once.
    """
    weights: Tensor = MaskedSoftmax.apply(scores, mask)
    return weights


class MaskedSoftmax(torch.autograd.Function):
    """The blocked scores become the lowest finite number, not minus infinity, so that a row with nothing allowed stays
    finite; multiplying by the mask afterwards turns its uniform weights into zeros.

    Backward, d loss / d score_i = a_i (g_i - sum_j a_j g_j) for weights a with gradients g, which is 0 where a_i is.
    """

    @staticmethod
    def forward(ctx: Any, scores: Tensor, mask: Tensor) -> Tensor:
        on_cpu = scores.device.type == "cpu"
        as_it_is = on_cpu and scores.shape[-1] >= _LONG
        dtype = scores.dtype if as_it_is else torch.promote_types(scores.dtype, torch.float32)
        weights = scores.to(dtype, copy=True)
        weights.masked_fill_(~mask, torch.finfo(weights.dtype).min)
        torch.softmax(weights, dim=-1, out=weights).mul_(mask)
        ctx.save_for_backward(weights)
        return weights.to(scores.dtype) if on_cpu else weights

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        [weights] = ctx.saved_tensors
        # autograd gives it the type of the scores.
        return torch._softmax_backward_data(grads[0].to(weights.dtype), weights, -1, weights.dtype), None
