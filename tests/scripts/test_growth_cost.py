"""scripts/benchmark.py growth, with models of a few numbers."""

import json
from argparse import ArgumentParser, Namespace

import pytest

import growth_cost
from nmt.text import EOS, PAD

TINY = ["model.num_layers=1", "trainer.accelerator=cpu"]


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


@pytest.mark.parametrize("model", ["transformer", "luong", "bahdanau"])
def test_a_wider_model_has_more_parameters(model: str) -> None:
    narrow, wide = (growth_cost.measure(5, 13, width, 20, 1, [f"model={model}"]) for width in (6, 12))
    for key in ("parameters", "operations_per_target_token"):
        assert 0 < narrow[key] < wide[key]


def test_each_axis_grows_by_itself() -> None:
    given = ["--length", "3,5", "--vocabulary", "13", "--width", "8", "--tokens", "20", "--steps", "2", *TINY]
    record = growth_cost.run(options(*given))
    assert json.loads(json.dumps(record)) == record
    assert [each["length"] for each in record["growth"]["length"]] == [3, 5]
    assert [len(each["seconds"]) for costs in record["growth"].values() for each in costs] == [2] * 4
    # One vocabulary and one width are the same for both lengths: the model does not grow with them.
    assert len({each["parameters"] for each in record["growth"]["length"]}) == 1
    assert growth_cost.table(record).count("\n| ") == 4


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--length", "1"], "--length is '1'; give numbers of at least 2, as in 16,32"),
        (["--width", "a"], "--width is 'a'; give numbers"),
        (["--vocabulary", "4"], "--vocabulary is '4'; give numbers of at least 5"),
        (["--steps", "0"], "--tokens 2048 and --steps 0 must be at least 1"),
        (["model=lung"], "There are no sizes for model=lung"),
    ],
)
def test_what_cannot_be_measured_is_refused(given: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        growth_cost.run(options(*given))
