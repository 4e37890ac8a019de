"""Dropout whose mask is cheap to draw on a CPU."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn


class Dropout(nn.Module):
    """Zeroes elements with probability p in training and scales the others by 1 / (1 - p) (Srivastava et al. 2014).

    torch draws one serial random number per element. On the CPU one 64-bit number serves eight elements here, a byte
    each, so p is rounded to a multiple of 1/256 there, and the scale is that of the rounded p. Where that would be 0
    torch draws.
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        if not 0 <= p < 1:
            raise ValueError(f"dropout is {p}, but a probability from 0 to below 1 is expected: set dropout=0.1, say.")
        self.p = p

    def forward(self, x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        if not self.training or self.p == 0:
            return x
        dropped_bytes = min(round(self.p * 256), 255)
        if x.device.type != "cpu" or dropped_bytes == 0:
            return F.dropout(x, self.p)
        return x * _scaled_keep_mask(x, dropped_bytes)


def _scaled_keep_mask(x: Tensor, dropped_bytes: int) -> Tensor:
    """256 / (256 - k) where a random byte is at least k = dropped_bytes, else 0."""
    words = torch.empty((x.numel() + 7) // 8, dtype=torch.int64)
    # With no bounds random_ never sets the top bit, and every eighth byte would be below 128.
    words.random_(-(2**63), None)
    random = words.view(torch.uint8)[: x.numel()].view(x.shape)
    # As bytes: torch is several times slower at comparing into bools, and at converting those.
    keep = torch.ge(random, dropped_bytes, out=torch.empty_like(random))
    return keep.to(x.dtype).mul_(256 / (256 - dropped_bytes))
