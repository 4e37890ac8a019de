"""Normalizers turn scores into weights. Blocked keys get exactly 0; a query without allowed keys gets all zeros."""

from abc import ABC, abstractmethod

import torch
from entmax import sparsemax
from jaxtyping import Bool, Float
from torch import Tensor, nn

from nmt.kernels.masked_softmax import masked_softmax


class Normalizer(nn.Module, ABC):
    """Turns scores into weights; `fused` is True if torch's fused attention kernel can compute this normalizer."""

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
    """a_i = max(score_i - tau, 0) over the allowed keys, with tau such that the weights sum to 1: the Euclidean
    projection of the scores onto the simplex (Martins & Astudillo 2016, equation 2 and proposition 1). Keys with a low
    score get exactly 0.
    """

    def forward(
        self, scores: Float[Tensor, "*batch queries keys"], mask: Bool[Tensor, "..."]
    ) -> Float[Tensor, "*batch queries keys"]:
        # Sums over a whole row need more precision than bfloat16.
        exact = scores.to(torch.promote_types(scores.dtype, torch.float32))
        allowed = exact.masked_fill(~mask, torch.finfo(exact.dtype).min)
        # Only scores within 1 of the highest get weight, so raising lower scores to the highest minus 2 changes no
        # weight. If a sum contained the lowest finite number instead, its other terms would be lost to rounding.
        floor = allowed.detach().amax(dim=-1, keepdim=True) - 2
        weights: Tensor = sparsemax(torch.maximum(allowed, floor), dim=-1)
        return (weights * mask).to(scores.dtype)
