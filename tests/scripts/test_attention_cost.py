"""scripts/bench/attention_cost.py: all ways give the same context, and their memory is counted."""

import json
from argparse import ArgumentParser, Namespace

import pytest
import torch

from nmt.attention import Attention
from nmt.attention.normalizers import Softmax
from nmt.attention.windows import Global
from nmt.errors import Mistake
from nmt.kernels import additive_score as kernel
from scripts.bench import attention_cost

CPU = torch.device("cpu")


def options(*given: str) -> Namespace:
    parser = ArgumentParser()
    attention_cost.add_arguments(parser)
    return parser.parse_args(given)


@pytest.mark.parametrize("scorer", attention_cost.SCORERS)
def test_all_ways_give_the_same_context(scorer: str) -> None:
    torch.manual_seed(3)
    site = Attention(attention_cost.SCORERS[scorer], Global, Softmax, query_dim=7, key_dim=7, num_heads=3)
    leaves, mask = attention_cost.inputs((6, 3, 5, 7), CPU)
    assert not mask.all()
    # In float64, so that only a different formula can make a difference.
    leaves = [leaf.double() for leaf in leaves]
    first, *others = (way(site.double(), *leaves, mask) for way in attention_cost.ways(site).values())
    assert others
    for other in others:
        torch.testing.assert_close(other, first)


def test_memory_is_what_was_held_at_a_time() -> None:
    def work() -> None:
        for _ in range(3):
            torch.ones(1000, 101).add_(torch.ones(1000, 101))

    assert attention_cost.peak_memory(work) == pytest.approx(2 * 1000 * 101 * 4, rel=0.01)


def test_blocks_keep_no_tensor_of_all_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(kernel.BLOCK, "cpu", 2**10)
    blocks, plain = attention_cost.measure("additive", (2, 3, 37, 13), rounds=1, device=CPU)
    pairs = 2 * 3 * 37 * 37 * 13 * 4
    assert blocks["peak_bytes"] < pairs < plain["peak_bytes"]


def test_the_record_holds_every_scorer_way_and_length() -> None:
    record = attention_cost.run(options("--lengths", "3,5", "--tokens", "11", "--width", "7", "--rounds", "2"))
    assert json.loads(json.dumps(record)) == record
    assert {each["scorer"] for each in record["costs"]} == set(attention_cost.SCORERS)
    assert all(len(each["seconds"]) == 2 and each["peak_bytes"] > 0 for each in record["costs"])
    assert attention_cost.table(record).count("\n| ") == 1 + 2 * 2 * len(attention_cost.SCORERS)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--heads", "0"], "Sizes and --rounds must be at least 1"),
        (["--lengths", "16,x"], "--lengths is '16,x'; use ascending numbers of at least 1"),
        (["--lengths", ""], "--lengths is ''; use ascending numbers"),
        (["--lengths", "3,0"], "--lengths is '3,0'; use ascending numbers"),
        (
            ["--lengths", "16,2048"],
            "scorer location accepts at most 1024 keys: drop it from --scorers",
        ),
        (["--scorers", "dot,none,dott"], "Unknown scorer 'dott'; available: additive, concat"),
    ],
)
def test_what_cannot_be_measured_is_refused(given: list[str], message: str) -> None:
    with pytest.raises(Mistake, match=message):
        attention_cost.run(options(*given))
