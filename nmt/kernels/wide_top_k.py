"""The largest numbers of rows that are as wide as a vocabulary."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

CHUNK = 64
"""Neighboring columns of which only the maximum is compared at first."""


def wide_top_k(x: Float[Tensor, "rows columns"], k: int) -> tuple[Float[Tensor, "rows k"], Int[Tensor, "rows k"]]:
    """The k largest numbers of each row and their columns, in descending order with NaN first, like `x.topk(k)`.

    The columns of equal numbers may differ from those of `topk`. On a CPU, `topk` pairs every number with its column
    before it compares any. So the k chunks with the largest maxima are found first: every number outside these chunks
    is at most the smallest of the k maxima. Narrow rows, of which these chunks would be a large part, are left to
    `topk`.
    """
    rows, columns = x.shape
    chunks = columns // CHUNK
    if x.device.type != "cpu" or chunks < 2 * k:
        values, indices = x.topk(k)
        return values, indices
    whole = x[:, : chunks * CHUNK].unflatten(1, (chunks, CHUNK))
    best = whole.amax(dim=2).topk(k, sorted=False).indices[:, :, None]
    index = (best * CHUNK + torch.arange(CHUNK)).flatten(1)
    index = torch.cat([index, torch.arange(chunks * CHUNK, columns).expand(rows, -1)], dim=1)
    values, places = x.gather(1, index).topk(k)
    return values, index.gather(1, places)
