"""One dropout for all places, with exceptions at some."""

import re
from functools import cache

import pytest
import torch

from nmt.cli.compose import configuration
from nmt.config.nodes import make
from nmt.errors import Mistake
from nmt.kernels.dropout import Dropout
from nmt.models import Seq2Seq, VocabularySizes
from nmt.models.dropout_places import dropout_rates

PLACES = {
    "transformer": ["embedding", "attention", "ffn", "residual"],
    "luong": ["embedding", "encoder", "decoder", "output"],
    "bahdanau": ["embedding", "encoder", "output"],
}


@cache
def rates(*overrides: str) -> dict[str, float]:
    """The dropout of every module of a configured model, by name."""
    node = configuration("train", [*overrides, "model.dropout=0.25", "run_dir=unused"])["model"]
    model: Seq2Seq = make(node)(vocabulary=VocabularySizes(19, 23, joint=False))
    return {name: module.p for name, module in model.named_modules() if isinstance(module, Dropout)}


def test_a_place_without_a_value_uses_the_common_one() -> None:
    assert dropout_rates(("a", "b", "c"), 0.3, {"a": 0.0, "b": None}) == {"a": 0.0, "b": 0.3, "c": 0.3}


@pytest.mark.parametrize("rate", [1.0, -0.1, True, "abc"])
def test_a_value_that_is_no_probability_is_refused_by_name(rate: object) -> None:
    with pytest.raises(Mistake, match=f"model.dropout_at.b is {rate}; it must be a number of at least 0 and below"):
        dropout_rates(("a", "b"), 0.3, {"b": rate})
    with pytest.raises(Mistake, match=f"model.dropout is {rate}; it must be a number of at least 0 and below 1"):
        dropout_rates(("a", "b"), rate, None)


def test_an_unknown_place_is_refused() -> None:
    with pytest.raises(Mistake, match=re.escape("model.dropout_at has no place 'd'; choose from a, b.")):
        dropout_rates(("a", "b"), 0.3, {"d": 0.1})


@pytest.mark.parametrize(("model", "place"), [(model, place) for model in PLACES for place in PLACES[model]])
def test_each_place_has_its_own_modules(model: str, place: str) -> None:
    before, after = (rates(f"model={model}", *more) for more in ([], [f"model.dropout_at.{place}=0.5"]))
    # A recurrent model's attention weights have none.
    changed = {name for name in before if before[name] != after[name]}
    assert {after[name] for name in changed} == {0.5}
    others = [rates(f"model={model}", f"model.dropout_at.{other}=0.5") for other in PLACES[model] if other != place]
    assert not any(found[name] == 0.5 for found in others for name in changed)


@pytest.mark.parametrize(("model", "place"), [(model, place) for model in PLACES for place in PLACES[model]])
def test_each_place_is_used(model: str, place: str, sentences: tuple[torch.Tensor, ...]) -> None:
    """Without dropout two passes of a model in training are the same; with it at one place they are not."""
    node = configuration("train", [f"model={model}", "model.dropout=0.0", "run_dir=unused"])["model"]
    for rate, same in ((0.0, True), (0.5, False)):
        changed = {**node, "dropout_at": {**node["dropout_at"], place: rate}}
        made = make(changed)(vocabulary=VocabularySizes(19, 23, joint=False)).train()
        assert made(*sentences).equal(made(*sentences)) is same


def test_together_the_places_cover_all_dropout() -> None:
    for model, places in PLACES.items():
        found = rates(f"model={model}", *(f"model.dropout_at.{place}=0.5" for place in places))
        assert {rate for name, rate in found.items() if model == "transformer" or "attention" not in name} == {0.5}
