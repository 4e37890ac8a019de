"""Modules whose weights are replaced next."""

import torch
from torch import nn

from nmt.kernels.no_initial_weights import NoInitialWeights

MODULES = (
    lambda: nn.Linear(3, 5),
    lambda: nn.Embedding(7, 3),
    lambda: nn.LSTM(3, 5, num_layers=2, bidirectional=True),
    lambda: nn.GRUCell(3, 5),
    lambda: nn.LayerNorm(4),
)


def test_no_random_number_is_drawn() -> None:
    before = torch.get_rng_state()
    for make in MODULES:
        with NoInitialWeights():
            make()
    assert torch.equal(torch.get_rng_state(), before)


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
