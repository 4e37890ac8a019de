"""Dropout with random masks that are cheap to draw on a CPU."""

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from nmt.errors import Mistake


class Dropout(nn.Module):
    """Zeroes elements with probability p in training and scales the others by 1 / (1 - p) (Srivastava et al. 2014).

    torch draws one random number per element. On the CPU, this module draws one 64-bit number per eight elements and
    uses one byte for each, so p is rounded to a multiple of 1/256, and the scale uses the rounded p. If p would round
    to 0, torch's dropout is used.
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        if not 0 <= p < 1:
            raise Mistake(f"dropout is {p}; it must be at least 0 and below 1, such as 0.1.")
        self.p = p

    def forward(self, x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        if not self.training or self.p == 0:
            return x
        dropped_bytes = self._dropped_bytes(x)
        if not dropped_bytes:
            return F.dropout(x, self.p)
        return x * _keep(x, dropped_bytes).mul_(_scale(dropped_bytes))

    def of_relu(self, x: Float[Tensor, "rows width"]) -> tuple[Float[Tensor, "rows width"], float]:
        """Returns a tensor and a scale whose product is dropout(max(0, x)); overwrites x.

        x should not be a view: autograd would copy the gradient of its base twice.
        """
        dropped_bytes = self._dropped_bytes(x) if self.training else 0
        if not dropped_bytes:
            return self(F.relu(x, inplace=True)), 1.0
        dropped: Tensor = _DroppedRelu.apply(x, dropped_bytes)
        return dropped, _scale(dropped_bytes)

    def _dropped_bytes(self, x: Tensor) -> int:
        """The number of byte values, out of 256, that drop an element; 0 if torch's dropout is used."""
        return min(round(self.p * 256), 255) if x.device.type == "cpu" else 0


class _DroppedRelu(torch.autograd.Function):
    """max(0, x) times a random 0 or 1, in place; the gradient is 0 wherever the result is 0."""

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
    """1 with probability 1 - dropped_bytes / 256, else 0, in the shape and dtype of x."""
    words = torch.empty((x.numel() + 7) // 8, dtype=torch.int64)
    # Without bounds, random_ never sets the top bit, so every eighth byte would be below 128.
    words.random_(-(2**63), None)
    random = words.view(torch.uint8)[: x.numel()].view(x.shape)
    # The comparison writes bytes, because torch is several times slower at writing bools and at casting them.
    return torch.ge(random, dropped_bytes, out=torch.empty_like(random)).to(x.dtype)


def _scale(dropped_bytes: int) -> float:
    return 256 / (256 - dropped_bytes)
