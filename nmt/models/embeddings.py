"""Token embeddings and sinusoidal position encodings."""

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.utils import parametrize

DIRECTION_STD = 0.01 / math.sqrt(3)
"""Initial standard deviation of the entries of vectors for which only the direction matters (FixNorm).

It is the standard deviation of U(-0.01, 0.01), as in the code of Nguyen & Salazar (2019). Vectors this short turn by a
large angle in a single optimizer step.
"""


class VocabularySizes(NamedTuple):
    """The vocabulary sizes of the two sides; `joint` is True if both sides share one tokenizer."""

    source: int
    target: int
    joint: bool


def token_embeddings(vocabulary: VocabularySizes, dim: int, std: float = 1.0) -> tuple[nn.Embedding, nn.Embedding]:
    """The embedding tables of both sides, drawn from N(0, std^2); one shared table if the vocabulary is joint."""
    target = _table(vocabulary.target, dim, std)
    return target if vocabulary.joint else _table(vocabulary.source, dim, std), target


def _table(vocab: int, dim: int, std: float) -> nn.Embedding:
    table = nn.Embedding(vocab, dim)
    nn.init.normal_(table.weight, std=std)
    return table


class _RowsOfLength(nn.Module):
    def __init__(self, length: float) -> None:
        super().__init__()
        self.length = length

    def extra_repr(self) -> str:
        return f"length = {self.length:g}"

    def forward(self, weight: Float[Tensor, "vocab dim"]) -> Float[Tensor, "vocab dim"]:
        unit = F.normalize(weight, dim=-1)
        return unit if self.length == 1.0 else self.length * unit


def with_rows_of_length(*modules: nn.Embedding | nn.Linear, length: float = 1.0) -> None:
    """Reparametrizes each row of `weight` as length * w / |w|, where w is trained.

    With length 1 this is FixNorm (Nguyen & Salazar 2019). Nguyen & Chiang (2018) also fix the norm of the output
    layer's input, as ScaleNorm does. Modules that share a weight still share it afterwards.
    """
    for module in dict.fromkeys(modules):
        # Unsafe: without a trial, for which torch imports its compiler if the module is on the meta device.
        parametrize.register_parametrization(module, "weight", _RowsOfLength(length), unsafe=True)


def with_plain_weights(model: nn.Module) -> None:
    """Undoes `with_rows_of_length` and keeps the current weights, for a model that will not be trained further."""
    for module in model.modules():
        if parametrize.is_parametrized(module, "weight"):
            parametrize.remove_parametrizations(module, "weight", leave_parametrized=True)


def sinusoids(positions: Int[Tensor, "*axes"], dim: int) -> Float[Tensor, "*axes {dim}"]:
    """PE(pos, 2i) = sin(pos / 10000^(2i/d)), PE(pos, 2i+1) = cos(same) (Vaswani et al. 2017, section 3.5)."""
    exponents = torch.arange(0, dim, 2, device=positions.device) / dim
    angles = positions.unsqueeze(-1) * torch.exp(-math.log(10000.0) * exponents)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)[..., :dim]
