"""Normalisers: scores to weights. Blocked keys get exactly 0; a row with nothing allowed is all zeros."""

from abc import ABC, abstractmethod
from typing import Any

import torch
from entmax import sparsemax
from jaxtyping import Bool, Float
from torch import Tensor, nn
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


class Normalizer(nn.Module, ABC):
    """Weights of scores and a mask. `fused` says that a fused kernel computes it, together with an inner product."""

    fused = False

    @abstractmethod
    def forward(
        self, scores: Float[Tensor, "*batch queries keys"], mask: Bool[Tensor, "..."]
    ) -> Float[Tensor, "*batch queries keys"]: ...


class Softmax(Normalizer):
    """a_i = exp(score_i) / sum_j exp(score_j) over the allowed keys j (Bahdanau et al. 2015, equation 6; Luong et al.
    2015, equation 7).
    """

    fused = True

    def forward(
        self, scores: Float[Tensor, "*batch queries keys"], mask: Bool[Tensor, "..."]
    ) -> Float[Tensor, "*batch queries keys"]:
        return masked_softmax(scores, mask)


class Sparsemax(Normalizer):
    """The point of the simplex nearest to the allowed keys' scores: a_i = max(score_i - tau, 0) with tau such that they
    sum to 1 (Martins & Astudillo 2016, equation 2 and proposition 1). Keys of low score get exactly 0.
    """

    def forward(
        self, scores: Float[Tensor, "*batch queries keys"], mask: Bool[Tensor, "..."]
    ) -> Float[Tensor, "*batch queries keys"]:
        # Its sums are as long as the row: bfloat16 could not tell them apart.
        exact = scores.to(torch.promote_types(scores.dtype, torch.float32))
        allowed = exact.masked_fill(~mask, torch.finfo(exact.dtype).min)
        # Only scores less than 1 below the highest get weight; nearer by, the lowest number does not swallow the sums.
        floor = allowed.detach().amax(dim=-1, keepdim=True) - 2
        weights: Tensor = sparsemax(torch.maximum(allowed, floor), dim=-1)
        return (weights * mask).to(scores.dtype)
