"""Fresh weights: an initializer changes those of a whole model, in place, before it is trained.

A scorer's own weights stay those that it began with, and so do a norm's.
"""

import math
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from nmt.models.base import Seq2Seq

_RECURRENT = (nn.RNNBase, nn.RNNCellBase)


def default(model: Seq2Seq) -> None:
    """The weights stay those with which torch makes linear maps and recurrent nets, and our models embeddings."""


@torch.no_grad()
def uniform(model: Seq2Seq, bound: float) -> None:
    """U(-bound, bound) for embeddings, linear maps and recurrent nets, biases too (Luong et al. 2015, section 4.1).

    Weights of which only the direction counts (FixNorm) stay as made.
    """
    _check_positive("bound", bound)
    for module in model.modules():
        if isinstance(module, (nn.Linear, nn.Embedding, *_RECURRENT)):
            for parameter in module.parameters(recurse=False):
                parameter.uniform_(-bound, bound)


@torch.no_grad()
def xavier(model: Seq2Seq) -> None:
    """U(-b, b) with b = sqrt(6 / (inputs + outputs)) for linear maps, each gate one of them (Glorot & Bengio 2010).

    Their biases become 0. Embeddings, and output weights that are embeddings or FixNorm's, stay as made.
    """
    _without_biases(model)
    for matrix in _matrices(model):
        nn.init.xavier_uniform_(matrix)


@torch.no_grad()
def small(model: Seq2Seq, dim: int) -> None:
    """N(0, 2 / (dim + 4 dim)) for all linear maps of a model `dim` wide (Nguyen & Salazar 2019, SmallInit).

    It is what Glorot & Bengio's would be for those of a feed-forward net of 4 dim, for all. Their biases become 0.
    Embeddings, and output weights that are embeddings or FixNorm's, stay as made.
    """
    _check_positive("dim", float(dim))
    _without_biases(model)
    for matrix in _matrices(model):
        matrix.normal_(std=math.sqrt(2 / (5 * dim)))


def _without_biases(model: Seq2Seq) -> None:
    """Sets the biases of linear maps and recurrent nets to 0."""
    for module in model.modules():
        if isinstance(module, (nn.Linear, *_RECURRENT)):
            for parameter in module.parameters(recurse=False):
                if parameter.dim() == 1:
                    parameter.zero_()


def _matrices(model: Seq2Seq) -> Iterator[Tensor]:
    """The weights of linear maps and of the gates of recurrent nets, but for those that are embeddings too."""
    embeddings = [table.weight for table in model.modules() if isinstance(table, nn.Embedding)]
    for module in model.modules():
        if isinstance(module, (nn.Linear, *_RECURRENT)):
            for parameter in module.parameters(recurse=False):
                if parameter.dim() > 1 and not any(parameter is table for table in embeddings):
                    yield from parameter.split(getattr(module, "hidden_size", len(parameter)))


def _check_positive(name: str, value: float) -> None:
    if not 0 < value < math.inf:
        raise ValueError(f"initializer.{name} is {value:g}; it must be a number above 0.")
