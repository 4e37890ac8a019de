"""Masks: boolean, True = may attend, broadcastable to (..., queries, keys)."""

import torch
from jaxtyping import Bool, Int, Real
from torch import Tensor


def lengths_to_mask(lengths: Int[Tensor, "*rows"], size: int) -> Bool[Tensor, "*rows {size}"]:
    """True at the first `lengths` of `size` positions; lengths may be given per sentence or per query."""
    return torch.arange(size, device=lengths.device) < lengths.unsqueeze(-1)


def causal_mask(size: int, device: torch.device | None = None) -> Bool[Tensor, "{size} {size}"]:
    """Query t may attend to keys 0..t (Vaswani et al. 2017, section 3.2.3)."""
    return torch.ones(size, size, dtype=torch.bool, device=device).tril()


def window_mask(center: Real[Tensor, "*rows 1"], half_width: int, size: int) -> Bool[Tensor, "*rows {size}"]:
    """True at the positions s in 0..size-1 with |s - center| <= half_width (Luong et al. 2015, section 3.2)."""
    return (torch.arange(size, device=center.device) - center).abs() <= half_width
