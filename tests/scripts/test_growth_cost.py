"""scripts/bench/growth_cost.py, with tiny models."""

import json
from argparse import ArgumentParser, Namespace
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from nmt.errors import Mistake
from nmt.text import EOS, PAD
from scripts.bench import growth_cost, training_cost


def options(*given: str) -> Namespace:
    parser = ArgumentParser()
    growth_cost.add_arguments(parser)
    return parser.parse_args(given)


def test_a_batch_is_made_of_whole_sentences_without_padding() -> None:
    batch = growth_cost.made_up(length=7, vocabulary=11, tokens=30)
    assert batch.source.shape == batch.target_output.shape == (4, 7)
    assert batch.tokens == 28
    assert not (batch.source == PAD).any()
    assert (batch.target_output[:, -1] == EOS).all()
    assert batch.source[:, :-1].min() > EOS
    assert growth_cost.made_up(length=7, vocabulary=11, tokens=3).tokens == 7


@pytest.fixture(autouse=True)
def matrix_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    """Saves measuring the machine's rate of matrix products for each size."""
    monkeypatch.setattr(growth_cost, "matrix_rate", lambda *_: 1e9)


@pytest.mark.parametrize("model", ["transformer", "luong", "bahdanau"])
def test_a_wider_model_has_more_parameters(model: str) -> None:
    narrow, wide = (growth_cost.measure(5, 13, width, model, "dot", 20, 1) for width in (64, 128))
    for key in ("parameters", "operations_per_target_token"):
        assert 0 < narrow[key] < wide[key]


@pytest.mark.parametrize(("model", "heads"), [("transformer", 3), ("luong", 1), ("bahdanau", 1)])
def test_recurrent_models_keep_their_one_head(model: str, heads: int) -> None:
    config = training_cost.configuration([f"model={model}", *growth_cost.widths(model, 192)])
    assert config["model"]["num_heads"] == heads


class SameProcess(ThreadPoolExecutor):
    """Saves starting a process for each size."""

    def __init__(self, workers: int, mp_context: Any) -> None:
        super().__init__(workers)


def test_one_axis_varies_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growth_cost, "ProcessPoolExecutor", SameProcess)
    sizes = ["--length", "3,5", "--vocabulary", "13", "--width", "64", "--tokens", "20", "--steps", "2"]
    record = growth_cost.run(options(*sizes, "--model", "luong"))
    assert json.loads(json.dumps(record)) == record
    assert [each["length"] for each in record["growth"]["length"]] == [3, 5]
    assert [len(each["seconds"]) for costs in record["growth"].values() for each in costs] == [2] * 4
    # One vocabulary and one width are the same for both lengths: the model does not grow with them.
    assert len({each["parameters"] for each in record["growth"]["length"]}) == 1
    assert growth_cost.table(record).count("\n| ") == 4


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--length", "1"], "--length is '1'; use ascending numbers of at least 2, such as 2,4"),
        (["--width", "a"], "--width is 'a'; use ascending numbers"),
        (["--width", "128,200"], "--width 200 must be a multiple of 64"),
        (["--vocabulary", "4"], "--vocabulary is '4'; use ascending numbers of at least 5"),
        (["--steps", "0"], "--tokens 2048 and --steps 0 must be at least 1"),
    ],
)
def test_what_cannot_be_measured_is_refused(given: list[str], message: str) -> None:
    with pytest.raises(Mistake, match=message):
        growth_cost.run(options(*given))
