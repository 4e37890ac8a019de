"""A cache that grows in blocks equals concatenation."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from nmt.kernels.key_value_cache import CACHE_BLOCK, NextLength, append, next_length


@pytest.mark.parametrize("ahead", [0, 2])
def test_appending_equals_concatenation_at_the_position_of_each_row(ahead: int):
    """The second row may have read more positions than the first."""
    torch.manual_seed(1)
    steps = 2 * CACHE_BLOCK + 3
    new = torch.randn(2, 3, steps + ahead, 5)
    cache, sizes = torch.zeros(2, 3, 0, 5), set()
    for step in range(ahead):  # the second row begins first
        position = torch.tensor([0, step])
        cache = append(cache, new[:, :, step : step + 1], position, next_length(position, cache))
    for step in range(steps):
        position = torch.tensor([step, step + ahead])
        fresh = torch.stack([new[0, :, step], new[1, :, step + ahead]]).unsqueeze(2)
        cache = append(cache, fresh, position, next_length(position, cache))
        sizes.add(cache.shape[2])
    assert cache[0, :, :steps].equal(new[0, :, :steps])
    assert cache[1, :, : steps + ahead].equal(new[1])
    assert sizes == {CACHE_BLOCK, 2 * CACHE_BLOCK, 3 * CACHE_BLOCK}


def test_a_cache_with_room_is_written_in_place_and_keeps_its_dtype():
    cache = torch.zeros(2, 1, CACHE_BLOCK, 3, dtype=torch.bfloat16)
    position = torch.tensor([4, 4])
    found = append(cache, torch.ones(2, 1, 1, 3), position, next_length(position, cache))
    assert found.data_ptr() == cache.data_ptr()
    assert found.dtype == torch.bfloat16
    assert found[:, :, 4].eq(1).all()
    assert found.sum() == 6


@pytest.mark.unchecked
def test_a_gpu_is_waited_for_once():
    """A number that is read from a tensor is a wait. The stand-in has nothing to read but the largest position."""
    position: Any = SimpleNamespace(device=torch.device("cuda"), max=lambda: 4)
    assert next_length(position, torch.zeros(2, 1, 0, 3)) == NextLength(5, equal=False)
