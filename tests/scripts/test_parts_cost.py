"""scripts/bench/parts_cost.py: the two ways of each part compute the same, here at tiny sizes.

The results may differ by the rounding of their number format: see `assert_equal_up_to`.
"""

import json
from argparse import Namespace
from collections.abc import Callable

import pytest
import torch

from nmt.errors import Mistake
from scripts.bench import parts_cost

FORMATS = pytest.mark.parametrize(("autocast", "dtype"), [(False, torch.float32), (True, torch.bfloat16)])


def assert_equal_up_to(roundings: int, dtype: torch.dtype, found: torch.Tensor, expected: torch.Tensor) -> None:
    """Compares two results, each with so many roundings to `dtype` of numbers as large as the largest of them."""
    bound = roundings * torch.finfo(dtype).eps * expected.abs().max().item()
    torch.testing.assert_close(found, expected, rtol=0, atol=bound)


@FORMATS
def test_both_ways_of_the_feed_forward_net_give_the_same(autocast: bool, dtype: torch.dtype) -> None:
    part = parts_cost.feed_forward(5, 7, 11, autocast)

    def seeded(way: Callable[[], torch.Tensor]) -> tuple[torch.Tensor, ...]:
        torch.manual_seed(4)
        result = way()
        return result, *torch.autograd.grad(result.float().square().sum(), part.ours.args[1])

    for plain, ours in zip(*(seeded(way.args[0]) for way in (part.plain, part.ours)), strict=True):
        # Sums of up to 44 products, three layers of them forward and backward; bfloat16 products are summed in float32.
        assert_equal_up_to(8 if autocast else 3 * 44, dtype, ours, plain)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_both_ways_of_the_softmax_give_the_same(dtype: torch.dtype) -> None:
    part = parts_cost.softmax(5, 7, dtype)
    plain, ours = (way.args[0]() for way in (part.plain, part.ours))
    # exp, a sum of seven, a quotient; bfloat16 rounds once more at the end.
    assert_equal_up_to(2 if dtype == torch.bfloat16 else 7 + 2, dtype, ours, plain)


@FORMATS
def test_both_ways_of_a_projection_give_the_same(autocast: bool, dtype: torch.dtype) -> None:
    part = parts_cost.projection(5, 3, 7, autocast)
    plain, ours = (way.args[0]() for way in (part.plain, part.ours))
    # Sums of 7 products, and of 15 for the gradient of the matrix, whose factors are rounded results themselves.
    assert_equal_up_to(2 if autocast else 7, dtype, ours, plain)
    wanted = part.ours.args[1]
    gradients = (torch.autograd.grad(each.float().square().sum(), wanted) for each in (plain, ours))
    for of_plain, of_ours in zip(*gradients, strict=True):
        assert_equal_up_to(4 if autocast else 7 + 15, dtype, of_ours, of_plain)


@FORMATS
def test_both_ways_to_the_loss_give_the_same(autocast: bool, dtype: torch.dtype) -> None:
    part = parts_cost.loss(5, 7, 11, 13, autocast)
    plain, ours = (way.args[0]() for way in (part.plain, part.ours))
    # Logits are sums of 11 products, a loss is a sum over 13 pieces, and there are 35 tokens.
    assert_equal_up_to(2 if autocast else 11 + 13 + 35, dtype, ours, plain)


@FORMATS
def test_both_ways_to_the_agreement_give_the_same(autocast: bool, dtype: torch.dtype) -> None:
    part = parts_cost.agreement(5, 7, 11, 13, autocast)
    plain, ours = (way.args[0]() for way in (part.plain, part.ours))
    assert_equal_up_to(2 if autocast else 11 + 13 + 2 * 35, dtype, ours, plain)


def test_an_int8_layer_is_nearly_the_layer() -> None:
    part = parts_cost.int8(5, 7, 11)
    [x] = part.plain.args
    [layer] = part.plain.func.__wrapped__
    # Inputs in 127 steps (CPUs without VNNI have 7 bits), weights in 254; each is off by up to half a step.
    input_step = (x.max().clamp(min=0) - x.min().clamp(max=0)) / 127
    weight_step = layer.weight.detach().abs().max() / 127
    bound = (x.abs().sum(dim=1).max() * weight_step + layer.weight.abs().sum(dim=1).max() * input_step).item()
    torch.testing.assert_close(
        part.ours(), part.plain(), atol=bound / 2 + 7 * (input_step * weight_step).item() / 4, rtol=0
    )


@pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="this build of torch has no oneDNN")
def test_packed_weights_give_the_same_product() -> None:
    part = parts_cost.packed(5, 7, 11, torch.float32)
    assert_equal_up_to(7 + 1, torch.float32, part.ours(), part.plain())
    cell = parts_cost.packed_cell(5, 7, 11)
    for ours, plain in zip(cell.ours(), cell.plain(), strict=True):
        assert_equal_up_to(7 + 11 + 2 + 10, torch.float32, ours, plain)


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
    with pytest.raises(Mistake, match="--rounds 0 must be at least 1"):
        parts_cost.run(Namespace(rounds=0))


def test_both_ways_to_the_best_scores_give_the_same() -> None:
    part = parts_cost.top_k(3, 5000, 7)
    assert all(torch.equal(one, other) for one, other in zip(part.plain(), part.ours(), strict=True))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_both_ways_to_write_to_the_cache_give_the_same(dtype: torch.dtype) -> None:
    part = parts_cost.cache(3, 5, 8, dtype)
    found = part.ours()
    assert torch.equal(part.plain(), found)
    assert found[:, :, -1].count_nonzero() == 3 * 8


def test_both_ways_of_a_search_step_s_attention_give_the_same() -> None:
    part = parts_cost.search_attention(3, 2, 6)
    # Sums of 64 products, an exponential, sums of 6 and a quotient; scores are up to about 20 in size.
    torch.testing.assert_close(part.ours(), part.plain(), rtol=0, atol=100 * 20 * torch.finfo(torch.float32).eps)
