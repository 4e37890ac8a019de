"""A decoder's cache of past positions that grows in blocks."""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

CACHE_BLOCK = 16
"""Number of positions by which a full cache grows; larger blocks waste memory, smaller ones copy more often."""


class NextLength(NamedTuple):
    """The lengths of the rows once each of them has read its next piece."""

    longest: int
    """max(position) + 1"""
    equal: bool
    """Whether all rows are known to be equally long, as in a search. Only read on the CPU."""


def next_length(position: Int[Tensor, " rows"], cache: Float[Tensor, "rows heads size dim"]) -> NextLength:
    """The lengths, read from the tensor once for all caches of a step.

    In an exported graph the cache has exactly max(position) positions, so its size is used instead: a number read from
    a tensor would become a constant of the graph.
    """
    if torch.compiler.is_exporting():
        return NextLength(cache.shape[2] + 1, True)
    if position.device.type != "cpu":  # each number that is read is a wait for the GPU
        return NextLength(int(position.max()) + 1, False)
    shortest, longest = map(int, position.aminmax())
    return NextLength(longest + 1, shortest == longest)


def append(
    cache: Float[Tensor, "rows heads size dim"],
    new: Float[Tensor, "rows heads 1 dim"],
    position: Int[Tensor, " rows"],
    length: NextLength,
) -> Float[Tensor, "rows heads _ dim"]:
    """Writes the new vector of each row to the row's `position` in the cache, in place.

    A cache with fewer than `length.longest` positions is first extended by CACHE_BLOCK positions. In an exported graph,
    where all rows have the same length, the result is a new cache with exactly that many positions.
    """
    longest = length.longest
    if torch.compiler.is_exporting():
        return torch.cat([cache, new], dim=2)
    if longest > cache.shape[2]:
        # F.pad would write the old positions twice.
        block = cache.new_zeros(*cache.shape[:2], CACHE_BLOCK, cache.shape[3])
        cache = torch.cat([cache, block], dim=2)
    if length.equal:  # a copy is many times faster than a scatter
        cache[:, :, longest - 1 : longest] = new
        return cache
    index = position.view(-1, 1, 1, 1).expand_as(new)
    return cache.scatter_(2, index, new.to(cache.dtype))


def in_use(cache: Float[Tensor, "rows heads size dim"], longest: int) -> Float[Tensor, "rows heads _ dim"]:
    """The first `longest` positions of a cache; in an exported graph, where a slice is a copy, the cache itself."""
    return cache if torch.compiler.is_exporting() else cache[:, :, :longest]
