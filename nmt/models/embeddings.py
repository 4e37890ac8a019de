"""Token embeddings and sinusoidal positions."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn


def token_embeddings(
    source_vocab: int, target_vocab: int, dim: int, joint: bool, std: float = 1.0
) -> tuple[nn.Embedding, nn.Embedding]:
    """The embedding tables of both sides, one table if the vocabulary is joint; entries start with deviation `std`."""
    target = _table(target_vocab, dim, std)
    return target if joint else _table(source_vocab, dim, std), target


def _table(vocab: int, dim: int, std: float) -> nn.Embedding:
    table = nn.Embedding(vocab, dim)
    nn.init.normal_(table.weight, std=std)
    return table


def sinusoids(positions: Int[Tensor, "*axes"], dim: int) -> Float[Tensor, "*axes {dim}"]:
    """PE(pos, 2i) = sin(pos / 10000^(2i/d)), PE(pos, 2i+1) = cos(same) (Vaswani et al. 2017, section 3.5)."""
    exponents = torch.arange(0, dim, 2, device=positions.device) / dim
    angles = positions.unsqueeze(-1) * torch.exp(-math.log(10000.0) * exponents)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)[..., :dim]
