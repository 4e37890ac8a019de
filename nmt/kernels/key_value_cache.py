"""A decoder's cache of past positions that grows in blocks."""

import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

CACHE_BLOCK = 16
"""Number of positions by which a full cache grows: more waste memory, fewer copy more often."""


def append(
    cache: Float[Tensor, "rows heads size dim"],
    new: Float[Tensor, "rows heads 1 dim"],
    position: Int[Tensor, " rows"],
    longest: int,
) -> Float[Tensor, "rows heads _ dim"]:
    """Writes the new vector of each row to the row's `position` in the cache, in place.

    A cache of fewer than `longest` = max(position) + 1 positions is first extended by CACHE_BLOCK positions.
    """
    if longest > cache.shape[2]:
        cache = F.pad(cache, (0, 0, 0, CACHE_BLOCK))
    index = position.view(-1, 1, 1, 1).expand_as(new)
    return cache.scatter_(2, index, new.to(cache.dtype))
