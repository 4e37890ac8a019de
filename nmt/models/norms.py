"""What keeps the lengths of a Transformer's vectors in bounds: norm(dim) is a module of vectors of that width."""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn


class LayerNorm(nn.LayerNorm):
    """(x - mean) / deviation, times and plus learned vectors (Ba et al. 2016)."""


class ScaleNorm(nn.Module):
    """g x / |x| with one learned length g, at first sqrt(dim) (Nguyen & Salazar 2019, ScaleNorm)."""

    def __init__(self, dim: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.length = nn.Parameter(torch.tensor(math.sqrt(dim)))
        self.eps = eps

    def forward(self, x: Float[Tensor, "*batch dim"]) -> Float[Tensor, "*batch dim"]:
        # Of the sum of many squares bfloat16 would keep too little.
        exact = x.to(torch.promote_types(x.dtype, torch.float32))
        return (self.length * exact / exact.norm(dim=-1, keepdim=True).clamp(min=self.eps)).to(x.dtype)
