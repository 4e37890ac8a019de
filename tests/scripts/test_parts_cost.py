"""scripts/bench/benchmark.py parts: the two ways of each part compute the same, here on sizes of a few numbers."""

import json
from argparse import Namespace
from collections.abc import Callable

import pytest
import torch

from scripts.bench import parts_cost


@pytest.mark.parametrize(("autocast", "tolerance"), [(False, 1e-5), (True, 2e-2)])
def test_both_ways_of_the_feed_forward_net_give_the_same(autocast: bool, tolerance: float) -> None:
    part = parts_cost.feed_forward(5, 7, 11, autocast)

    def seeded(way: Callable[[], torch.Tensor]) -> tuple[torch.Tensor, ...]:
        torch.manual_seed(4)
        result = way()
        return result, *torch.autograd.grad(result.float().square().sum(), part.ours.args[1])

    for plain, ours in zip(*(seeded(way.args[0]) for way in (part.plain, part.ours)), strict=True):
        torch.testing.assert_close(plain, ours, rtol=5 * tolerance, atol=5 * tolerance)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-6), (torch.bfloat16, 1e-2)])
def test_both_ways_of_the_softmax_give_the_same(dtype: torch.dtype, tolerance: float) -> None:
    part = parts_cost.softmax(5, 7, dtype)
    plain, ours = (way.args[0]() for way in (part.plain, part.ours))
    torch.testing.assert_close(plain, ours, rtol=tolerance, atol=0)


@pytest.mark.parametrize(("autocast", "tolerance"), [(False, 1e-5), (True, 2e-2)])
def test_both_ways_of_a_projection_give_the_same(autocast: bool, tolerance: float) -> None:
    part = parts_cost.projection(5, 3, 7, autocast)
    plain, ours = (way.args[0]() for way in (part.plain, part.ours))
    torch.testing.assert_close(plain, ours, rtol=tolerance, atol=tolerance)
    wanted = part.ours.args[1]
    gradients = (torch.autograd.grad(each.float().square().sum(), wanted) for each in (plain, ours))
    torch.testing.assert_close(*gradients, rtol=5 * tolerance, atol=5 * tolerance)


@pytest.mark.parametrize(("autocast", "tolerance"), [(False, 1e-5), (True, 2e-2)])
def test_both_ways_to_the_loss_give_the_same(autocast: bool, tolerance: float) -> None:
    part = parts_cost.loss(5, 7, 11, 13, autocast)
    plain, ours = (way.args[0]() for way in (part.plain, part.ours))
    torch.testing.assert_close(plain, ours, rtol=tolerance, atol=0)


@pytest.mark.parametrize(("autocast", "tolerance"), [(False, 1e-5), (True, 2e-2)])
def test_both_ways_to_the_agreement_give_the_same(autocast: bool, tolerance: float) -> None:
    part = parts_cost.agreement(5, 7, 11, 13, autocast)
    plain, ours = (way.args[0]() for way in (part.plain, part.ours))
    torch.testing.assert_close(plain, ours, rtol=tolerance, atol=0)


def test_an_int8_layer_is_nearly_the_layer() -> None:
    part = parts_cost.int8(5, 7, 11)
    torch.testing.assert_close(part.plain(), part.ours(), atol=0.05, rtol=0.05)


def test_rows_move_to_the_same_places() -> None:
    part = parts_cost.rows(31, 3, 8, 2)
    plain, ours = part.plain(), part.ours()
    for one, other in zip(plain, ours, strict=True):
        torch.testing.assert_close(one, other, atol=0, rtol=0)


def test_dropout_drops_as_many() -> None:
    part = parts_cost.dropout(31, 37, 41)
    for way in (part.plain, part.ours):
        dropped = (way.args[0]() == 0).float().mean()
        # 47,027 draws: five standard errors of 0.1, and 26/256 instead of it.
        assert dropped == pytest.approx(0.1, abs=5 * 0.0014 + 0.0016)


def test_the_record_holds_every_part(monkeypatch: pytest.MonkeyPatch) -> None:
    small = [parts_cost.dropout(2, 3, 5), parts_cost.rows(3, 2, 4, 1)]
    monkeypatch.setattr(parts_cost, "parts", lambda: small)
    record = parts_cost.run(Namespace(rounds=2))
    assert json.loads(json.dumps(record)) == record
    assert [len(each["plain"]) for each in record["parts"]] == [2, 2]
    assert parts_cost.table(record).count("\n| ") == 2


def test_no_rounds_are_refused() -> None:
    with pytest.raises(ValueError, match="--rounds 0 must be at least 1"):
        parts_cost.run(Namespace(rounds=0))
