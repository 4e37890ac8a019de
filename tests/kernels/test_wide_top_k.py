"""The largest numbers of wide rows are those that torch's topk finds."""

import math

import pytest
import torch

from nmt.kernels.wide_top_k import CHUNK, wide_top_k


@pytest.mark.parametrize("columns", [10, 20 * CHUNK, 20 * CHUNK + 1, 8000, 5 * 7919])
@pytest.mark.parametrize("k", [1, 2, 10])
def test_it_finds_the_numbers_of_topk(columns: int, k: int):
    torch.manual_seed(1)
    x = torch.randn(3, columns)
    values, found = wide_top_k(x, k)
    expected = x.topk(k)
    assert torch.equal(values, expected.values)
    assert torch.equal(found, expected.indices)


def test_numbers_that_share_a_chunk_or_are_in_the_last_columns_are_found():
    x = torch.zeros(2, 20 * CHUNK + 3)
    x[0, 5 * CHUNK : 5 * CHUNK + 4] = torch.tensor([4.0, 3.0, 2.0, 1.0])
    x[1, -4:] = torch.tensor([4.0, 3.0, 2.0, 1.0])
    values, found = wide_top_k(x, 4)
    assert values.tolist() == [[4, 3, 2, 1]] * 2
    assert found.tolist() == [[5 * CHUNK + i for i in range(4)], [20 * CHUNK - 1 + i for i in range(4)]]


def test_equal_numbers_are_found_at_different_columns():
    values, found = wide_top_k(torch.zeros(2, 30 * CHUNK), 10)
    assert values.eq(0).all()
    assert all(len(set(row)) == 10 for row in found.tolist())


def test_minus_infinity_comes_last_and_nan_first():
    x = torch.full((2, 30 * CHUNK), -math.inf)
    x[0, 70], x[0, 1000] = 1.0, 2.0
    x[1, 1500], x[1, 3] = math.nan, 5.0
    values, found = wide_top_k(x, 3)
    assert values[0].tolist() == [2, 1, -math.inf]
    assert found[0, :2].tolist() == [1000, 70]
    assert values[1, 0].isnan()
    assert found[1, :2].tolist() == [1500, 3]


def test_rows_need_not_be_contiguous():
    torch.manual_seed(1)
    x = torch.randn(40 * CHUNK, 3).T
    assert torch.equal(wide_top_k(x, 5)[1], x.topk(5).indices)
