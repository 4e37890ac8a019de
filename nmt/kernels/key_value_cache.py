"""A decoder's cache of past positions that grows in blocks."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

CACHE_BLOCK = 16
"""Number of positions by which a full cache grows; larger blocks waste memory, smaller ones copy more often."""


def length_with_next(position: Int[Tensor, " rows"], cache: Float[Tensor, "rows heads size dim"]) -> int:
    """max(position) + 1: the number of positions in use once each row has read its next piece.

    In an exported graph the cache has exactly max(position) positions, so its size is used instead: a number read from
    a tensor would become a constant of the graph.
    """
    return cache.shape[2] + 1 if torch.compiler.is_exporting() else int(position.max()) + 1


def append(
    cache: Float[Tensor, "rows heads size dim"],
    new: Float[Tensor, "rows heads 1 dim"],
    position: Int[Tensor, " rows"],
    longest: int,
) -> Float[Tensor, "rows heads _ dim"]:
    """Writes the new vector of each row to the row's `position` in the cache, in place.

    A cache with fewer than `longest` = max(position) + 1 positions is first extended by CACHE_BLOCK positions. In an
    exported graph, where all rows have the same length, the result is a new cache with exactly `longest` positions.
    """
    if torch.compiler.is_exporting():
        return torch.cat([cache, new], dim=2)
    if longest > cache.shape[2]:
        # F.pad would write the old positions twice.
        block = cache.new_zeros(*cache.shape[:2], CACHE_BLOCK, cache.shape[3])
        cache = torch.cat([cache, block], dim=2)
    if cache.device.type == "cpu" and int(position.min()) == longest - 1:
        # All rows are equally long, as in a search. On a CPU, a copy is many times faster than a scatter.
        cache[:, :, longest - 1 : longest] = new
        return cache
    index = position.view(-1, 1, 1, 1).expand_as(new)
    return cache.scatter_(2, index, new.to(cache.dtype))


def in_use(cache: Float[Tensor, "rows heads size dim"], longest: int) -> Float[Tensor, "rows heads _ dim"]:
    """The first `longest` positions of a cache; in an exported graph, where a slice is a copy, the cache itself."""
    return cache if torch.compiler.is_exporting() else cache[:, :, :longest]
