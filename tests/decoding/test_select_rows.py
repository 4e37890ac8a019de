from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from nmt.decoding.state import move_rows, select_rows


class Inner(NamedTuple):
    values: Tensor


class Outer(NamedTuple):
    inner: Inner
    pair: tuple[Tensor, tuple[Tensor, ...]]


def test_rows_are_taken_in_order_through_nested_tuples_and_types_are_kept() -> None:
    rows = torch.tensor([2, 0, 2])
    a, b, c = torch.randn(3, 5), torch.randn(3), torch.randn(3, 2, 7)
    chosen = select_rows(Outer(Inner(a), (b, (c,))), rows)
    assert isinstance(chosen, Outer)
    assert isinstance(chosen.inner, Inner)
    torch.testing.assert_close(chosen.inner.values, a[[2, 0, 2]])
    torch.testing.assert_close(chosen.pair[0], b[[2, 0, 2]])
    torch.testing.assert_close(chosen.pair[1][0], c[[2, 0, 2]])


def test_the_result_shares_no_memory() -> None:
    a = torch.zeros(3)
    select_rows((a,), torch.tensor([0, 1, 2]))[0].fill_(1)
    assert a.sum() == 0


def test_an_invalid_leaf_is_refused() -> None:
    with pytest.raises(TypeError, match="not list"):
        select_rows((torch.zeros(2), [1, 2]), torch.tensor([0]))


@pytest.mark.parametrize("rows", [[0, 1, 2, 3, 4], [0, 4, 2], [4, 3, 2, 1, 0], [2, 2, 2, 2, 2], []])
def test_moving_equals_selecting_in_place(rows: list[int]) -> None:
    order = torch.tensor(rows, dtype=torch.long)
    a, b = torch.randn(5, 3), torch.randn(5, 2, 7)
    expected = select_rows(Outer(Inner(a), (b, (a[:, 0].clone(),))), order)
    start = b.data_ptr()
    moved = move_rows(Outer(Inner(a), (b, (a[:, 0].clone(),))), order)
    torch.testing.assert_close(moved, expected)
    assert isinstance(moved, Outer)
    assert not rows or moved.pair[0].data_ptr() == start


def test_an_invalid_leaf_is_refused_in_place_too() -> None:
    with pytest.raises(TypeError, match="not list"):
        move_rows((torch.zeros(2), [1, 2]), torch.tensor([0]))
