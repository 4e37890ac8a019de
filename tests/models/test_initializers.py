"""The weights that each initializer changes, their distribution, and the weights that it does not change."""

import math
from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import Tensor

from nmt.errors import Mistake
from nmt.models import Seq2Seq
from nmt.models.initializers import default, small, uniform, xavier

MODELS = ["bahdanau", "luong", "transformer"]
# Parameters of scorers and norms, and embeddings, which are also the Transformer's output layer.
KEPT = ("scorer", "norm", "embedding")


def values(model: Seq2Seq) -> dict[str, Tensor]:
    return {name: parameter.detach().clone() for name, parameter in model.named_parameters()}


@pytest.mark.parametrize("model", MODELS)
def test_default_changes_nothing(make_model: Callable[..., Seq2Seq], model: str) -> None:
    made = make_model(model, "additive")
    before = values(made)
    default(made)
    torch.testing.assert_close(values(made), before, rtol=0, atol=0)


@pytest.mark.parametrize("model", MODELS)
def test_uniform_stays_within_its_bound_and_nearly_reaches_it(make_model: Callable[..., Seq2Seq], model: str) -> None:
    made = make_model(model, "additive")
    before = values(made)
    uniform(made, 0.01)
    drawn = [value for name, value in values(made).items() if not any(part in name for part in ("scorer", "norm"))]
    assert all(value.abs().max() <= 0.01 for value in drawn)
    assert torch.cat([value.flatten() for value in drawn]).abs().max() > 0.0099
    kept = [name for name in before if any(part in name for part in ("scorer", "norm"))]
    assert kept
    assert all(values(made)[name].equal(before[name]) for name in kept)


@pytest.mark.parametrize("initializer", [xavier, partial(small, dim=12)])
@pytest.mark.parametrize("model", MODELS)
def test_biases_become_zero_and_embeddings_stay(
    make_model: Callable[..., Seq2Seq], model: str, initializer: Callable[[Seq2Seq], None]
) -> None:
    made = make_model(model, "additive")
    before = values(made)
    initializer(made)
    for name, value in values(made).items():
        if any(part in name for part in KEPT):
            assert value.equal(before[name]), name
        elif value.dim() == 1:
            assert not value.any(), name
        else:
            assert not value.equal(before[name]), name


def test_small_has_the_standard_deviation_of_the_paper(make_model: Callable[..., Seq2Seq]) -> None:
    made = make_model("transformer", "scaled_dot")
    small(made, 512)
    drawn = torch.cat([each.flatten() for name, each in values(made).items() if each.dim() > 1 and "emb" not in name])
    assert len(drawn) > 1000
    # Five standard errors of the standard deviation of so many draws.
    error = 5 / math.sqrt(2 * len(drawn))
    torch.testing.assert_close(drawn.std().item(), math.sqrt(2 / (512 + 4 * 512)), rtol=error, atol=0)


def test_xavier_treats_each_gate_separately(make_model: Callable[..., Seq2Seq]) -> None:
    made = make_model("luong", "dot")
    xavier(made)
    for gate in made.cells[0].weight_ih.split(14):
        bound = math.sqrt(6 / (gate.shape[0] + gate.shape[1]))
        assert 0.9 * bound < gate.abs().max() <= bound


@pytest.mark.parametrize(
    ("initializer", "message"),
    [
        (partial(uniform, bound=0.0), "initializer.bound is 0; it must be above 0 and finite"),
        (partial(uniform, bound=math.inf), "initializer.bound is inf; it must be above 0 and finite"),
        (partial(small, dim=None), "initializer.dim is null; set it to the width of the model, or choose another"),
        (partial(small, dim=-1), "initializer.dim is -1; it must be above 0 and finite"),
    ],
)
def test_invalid_values_are_refused(
    make_model: Callable[..., Seq2Seq], initializer: Callable[[Seq2Seq], None], message: str
) -> None:
    with pytest.raises(Mistake, match=message):
        initializer(make_model("luong", "dot"))


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("initializer", [default, partial(uniform, bound=0.1), xavier, partial(small, dim=12)])
def test_weights_under_fix_norm_stay(
    make_model: Callable[..., Seq2Seq], initializer: Callable[[Seq2Seq], None], model: str
) -> None:
    made = make_model(model, "dot", fix_norm=True)
    before = values(made)
    initializer(made)
    after = values(made)
    assert after.keys() == before.keys()
    trained = [name for name in before if "parametrizations" in name]
    assert len(trained) == (2 if model == "transformer" else 3)
    assert all(after[name].equal(before[name]) for name in trained)
