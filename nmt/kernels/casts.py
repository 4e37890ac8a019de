"""Casts that save time under autocast: one for the input of several matrix products, one for the residual stream."""

import torch
from jaxtyping import Float
from torch import Tensor

Inputs = Float[Tensor, "batch n dim"]


def cast_for_products(x: Inputs) -> Inputs:
    """Casts x once to the dtype in which autocast computes matrix products; autocast would cast it for each product."""
    device = x.device.type
    return x.to(torch.get_autocast_dtype(device)) if torch.is_autocast_enabled(device) else x


def cast_residual(x: Inputs) -> Inputs:
    """Casts the input of a residual stream to bfloat16 under bfloat16 autocast; otherwise returns x.

    This halves the memory traffic of every layer. The sums then keep only 8 significant bits, which changes
    gradients a little and training losses not at all (docs/lab_notebook.md). This is not done in float16, whose range
    the sums may exceed.
    """
    device = x.device.type
    bfloat16 = torch.is_autocast_enabled(device) and torch.get_autocast_dtype(device) == torch.bfloat16
    return x.bfloat16() if bfloat16 else x
