"""Normalisers: scores to weights. Blocked keys get exactly 0; a row with nothing allowed is all zeros."""

from abc import ABC, abstractmethod

import torch
from entmax import sparsemax
from jaxtyping import Bool, Float
from torch import Tensor, nn

from nmt.kernels.masked_softmax import masked_softmax


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
