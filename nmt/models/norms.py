"""Normalization layers for the Transformer; norm(dim) is a module for vectors of width dim."""

import math

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn


class LayerNorm(nn.LayerNorm):
    """g * (x - mean) / deviation + b with learned vectors g and b (Ba et al. 2016)."""

    def forward(self, x: Float[Tensor, "*batch dim"]) -> Float[Tensor, "*batch dim"]:
        if not x.is_cuda:
            return super().forward(x)
        # Autocast would cast a bfloat16 residual stream to float32 and back; the kernel's sums are float32 anyway.
        with torch.autocast("cuda", enabled=False):
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
