"""Normalization layers for the Transformer; norm(dim) is a module for vectors of width dim."""

import math

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn


class LayerNorm(nn.LayerNorm):
    """g * (x - mean) / deviation + b with learned vectors g and b (Ba et al. 2016)."""

    def forward(self, x: Float[Tensor, "*batch dim"]) -> Float[Tensor, "*batch dim"]:
        return self.in_its_dtype(x) if x.is_cuda else super().forward(x)

    def in_its_dtype(self, x: Float[Tensor, "*batch dim"]) -> Float[Tensor, "*batch dim"]:
        """The norm in the dtype of x, with sums in float32, also under autocast.

        Autocast on a GPU would cast a bfloat16 residual stream to float32 and back. In bfloat16, g and b and their
        gradients are rounded to bfloat16 too.
        """
        with torch.autocast(x.device.type, enabled=False):
            weight, bias = self.weight.to(x.dtype), self.bias.to(x.dtype)
            return F.layer_norm(x, self.normalized_shape, weight, bias, self.eps)


class ScaleNorm(nn.Module):
    """g x / |x| with one learned scalar g, initially sqrt(dim) (Nguyen & Salazar 2019, ScaleNorm)."""

    def __init__(self, dim: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.length = nn.Parameter(torch.tensor(math.sqrt(dim)))
        self.eps = eps

    def forward(self, x: Float[Tensor, "*batch dim"]) -> Float[Tensor, "*batch dim"]:
        # bfloat16 is too coarse for the sum of many squares.
        exact = x.to(torch.promote_types(x.dtype, torch.float32))
        return (self.length * exact / exact.norm(dim=-1, keepdim=True).clamp(min=self.eps)).to(x.dtype)
