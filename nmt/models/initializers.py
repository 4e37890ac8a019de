"""Initializers: each replaces the initial weights of a whole model, in place.

The parameters of scorers and norms are never changed.
"""

import math
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from nmt.errors import Mistake
from nmt.models.base import Attending

_RECURRENT = (nn.RNNBase, nn.RNNCellBase)


def default(model: Attending) -> None:
    """Keeps torch's initial weights in linear layers and recurrent networks, and the model's own in embeddings."""


@torch.no_grad()
def uniform(model: Attending, bound: float) -> None:
    """U(-bound, bound) for embeddings, linear layers and recurrent networks, including biases (Luong et al. 2015,
    section 4.1).

    Weights under FixNorm are not changed. Raises Mistake if `bound` is not positive.
    """
    _check_positive("bound", bound)
    for module in model.modules():
        if isinstance(module, (nn.Linear, nn.Embedding, *_RECURRENT)):
            for parameter in module.parameters(recurse=False):
                parameter.uniform_(-bound, bound)


@torch.no_grad()
def xavier(model: Attending) -> None:
    """U(-b, b) with b = sqrt(6 / (inputs + outputs)) for linear layers and for each gate (Glorot & Bengio 2010).

    Biases become 0. Embeddings, output layers tied to them, and weights under FixNorm are not changed.
    """
    _without_biases(model)
    for matrix in _matrices(model):
        nn.init.xavier_uniform_(matrix)


@torch.no_grad()
def small(model: Attending, dim: int | None) -> None:
    """N(0, 2 / (dim + 4 dim)) for all linear layers and gates of a model of width `dim` (Nguyen & Salazar 2019,
    SmallInit).

    This is the variance that Glorot & Bengio give for a feed-forward net with 4 dim hidden units; here all layers use
    it. Biases become 0. Embeddings, output layers tied to them, and weights under FixNorm are not changed. Raises
    Mistake if `dim` is None, as it is where a model has no width, or not positive.
    """
    if dim is None:
        raise Mistake("initializer.dim is null; set it to the width of the model, or choose another initializer.")
    _check_positive("dim", float(dim))
    _without_biases(model)
    for matrix in _matrices(model):
        matrix.normal_(std=math.sqrt(2 / (5 * dim)))


def _without_biases(model: Attending) -> None:
    """Sets the biases of linear layers and recurrent networks to 0."""
    for module in model.modules():
        if isinstance(module, (nn.Linear, *_RECURRENT)):
            for parameter in module.parameters(recurse=False):
                if parameter.dim() == 1:
                    parameter.zero_()


def _matrices(model: Attending) -> Iterator[Tensor]:
    """The matrices of linear layers and of each gate of recurrent networks, except those shared with embeddings."""
    embeddings = [table.weight for table in model.modules() if isinstance(table, nn.Embedding)]
    for module in model.modules():
        if isinstance(module, (nn.Linear, *_RECURRENT)):
            for parameter in module.parameters(recurse=False):
                if parameter.dim() > 1 and not any(parameter is table for table in embeddings):
                    yield from parameter.split(getattr(module, "hidden_size", len(parameter)))


def _check_positive(name: str, value: float) -> None:
    if not 0 < value < math.inf:
        raise Mistake(f"initializer.{name} is {value:g}; it must be above 0 and finite.")
