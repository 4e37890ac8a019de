"""Dropout whose mask is cheap to draw on a CPU."""

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd.function import once_differentiable


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
        dropped_bytes = self._dropped_bytes(x)
        if not dropped_bytes:
            return F.dropout(x, self.p)
        return x * _keep(x, dropped_bytes).mul_(_scale(dropped_bytes))

    def of_relu(self, x: Float[Tensor, "rows width"]) -> tuple[Float[Tensor, "rows width"], float]:
        """Dropout of max(0, x), in the memory of x and not yet scaled; and the scale.

        Whoever multiplies it by a matrix scales that instead, which is smaller. x should not be a view: autograd would
        copy the gradient of all that it is a view of, and copy it again.
        """
        dropped_bytes = self._dropped_bytes(x) if self.training else 0
        if not dropped_bytes:
            return self(F.relu(x, inplace=True)), 1.0
        dropped: Tensor = _DroppedRelu.apply(x, dropped_bytes)
        return dropped, _scale(dropped_bytes)

    def _dropped_bytes(self, x: Tensor) -> int:
        """Below which of a byte's 256 values an element is dropped; 0 where torch draws."""
        return min(round(self.p * 256), 255) if x.device.type == "cpu" else 0


class _DroppedRelu(torch.autograd.Function):
    """max(0, x) where a random byte is at least k, else 0; an element that is 0 for either reason has no gradient."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, dropped_bytes: int) -> Tensor:
        x.clamp_min_(0).mul_(_keep(x, dropped_bytes))
        ctx.mark_dirty(x)
        ctx.save_for_backward(x)
        return x

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        [result] = ctx.saved_tensors
        return torch.ops.aten.threshold_backward(grads[0], result, 0), None


def _keep(x: Tensor, dropped_bytes: int) -> Tensor:
    """1 where a random byte is at least k = dropped_bytes, else 0, in the shape and the type of x."""
    words = torch.empty((x.numel() + 7) // 8, dtype=torch.int64)
    # With no bounds random_ never sets the top bit, and every eighth byte would be below 128.
    words.random_(-(2**63), None)
    random = words.view(torch.uint8)[: x.numel()].view(x.shape)
    # As bytes: torch is several times slower at comparing into bools, and at converting those.
    return torch.ge(random, dropped_bytes, out=torch.empty_like(random)).to(x.dtype)


def _scale(dropped_bytes: int) -> float:
    return 256 / (256 - dropped_bytes)
