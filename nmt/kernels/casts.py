"""The number formats in which a model multiplies and adds under autocast."""

import torch
from jaxtyping import Float
from torch import Tensor

Inputs = Float[Tensor, "batch n dim"]


def as_multiplied(x: Inputs) -> Inputs:
    """x in the type that autocast gives to matrix products; it would convert x for each of the products anew."""
    kind = x.device.type
    return x.to(torch.get_autocast_dtype(kind)) if torch.is_autocast_enabled(kind) else x


def as_stream(x: Inputs) -> Inputs:
    """x in the type in which the residual connections add: bfloat16 under a CPU's autocast to it, else that of x.

    Every layer then reads and writes half the memory. The price is that sums keep 8 binary digits: gradients are about
    1.5 times as far from those of float32 as autocast alone leaves them, and losses learn the same (docs/speed.md). On
    a GPU autocast makes float32 of a norm's input, which would add conversions; float16 sums may leave the range.
    """
    kind = x.device.type
    rounded = kind == "cpu" and torch.is_autocast_enabled(kind) and torch.get_autocast_dtype(kind) == torch.bfloat16
    return x.bfloat16() if rounded else x
