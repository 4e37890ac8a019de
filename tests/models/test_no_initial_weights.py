"""Modules whose weights are replaced next."""

from collections.abc import Callable

import torch
from torch import nn

from nmt.models import DocumentModel, Seq2Seq
from nmt.models.no_initial_weights import NoInitialWeights

MODULES = (
    lambda: nn.Linear(3, 5),
    lambda: nn.Embedding(7, 3),
    lambda: nn.LSTM(3, 5, num_layers=2, bidirectional=True),
    lambda: nn.GRUCell(3, 5),
    lambda: nn.LayerNorm(4),
)


def draws(build: Callable[[], Seq2Seq | DocumentModel]) -> bool:
    """Whether random numbers are drawn to build a model, which sets a seed before."""
    build()
    state = torch.get_rng_state()
    torch.manual_seed(torch.initial_seed())
    return not torch.equal(torch.get_rng_state(), state)


def test_no_model_draws_a_random_number(
    rows: dict[str, Callable[[], Seq2Seq]], document_model: Callable[..., DocumentModel]
) -> None:
    with NoInitialWeights():
        assert [name for name, build in rows.items() if draws(build)] == []
        assert not draws(document_model)
    assert draws(document_model)


def test_names_shapes_and_constants_are_those_of_the_usual_module() -> None:
    for make in MODULES:
        usual = make().state_dict()
        with NoInitialWeights():
            new = make().state_dict()
        assert {name: tensor.shape for name, tensor in new.items()} == {
            name: tensor.shape for name, tensor in usual.items()
        }
    with NoInitialWeights():
        norm = nn.LayerNorm(4)
    assert torch.equal(norm.weight, torch.ones(4))
