"""Inner-product attention with torch's fused kernel."""

from contextlib import nullcontext

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

_MANY_KEYS = 128
"""With fewer keys and without gradients, the formula is usually as fast as the fused kernel on a CPU, or faster."""
_GPU_KERNELS = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
"""All but cuDNN's, which is slow to prepare for a batch of a new shape (docs/lab_notebook.md)."""


def prefers_fused(queries: Tensor, keys: Tensor, dropout: float) -> bool:
    """Whether to use the fused kernel instead of the explicit formula.

    Timings of both, with and without gradients, are in docs/lab_notebook.md.

    A GPU uses it, except for a single query with gradients. A CPU uses it only in float32 and without dropout, and
    without gradients only for many keys. An exported graph cannot contain it.
    """
    if torch.compiler.is_exporting():
        return False  # torch's replacement takes more steps than the explicit formula
    if queries.is_cuda:
        # In a recurrent decoder, which has single queries, the kernel's backward pass took most of a training step.
        return queries.shape[-2] > 1 or not torch.is_grad_enabled()
    # With dropout, torch falls back to the explicit formula with slower random numbers; in bfloat16, the kernel's
    # backward pass is many times slower.
    on_cpu = queries.device.type == "cpu" and queries.dtype == torch.float32 and dropout == 0
    return on_cpu and (torch.is_grad_enabled() or keys.shape[-2] >= _MANY_KEYS)


def inner_product_context(
    queries: Float[Tensor, "batch heads queries dim"],
    keys: Float[Tensor, "batch heads keys dim"],
    values: Float[Tensor, "batch heads keys value_dim"],
    mask: Bool[Tensor, "..."],
    dropout: float,
) -> Float[Tensor, "batch heads queries value_dim"]:
    """dropout(softmax(queries @ keys^T)) @ values over the allowed keys; zeros for a query without allowed keys."""
    mask = torch.atleast_2d(mask)  # the kernel rejects a mask with one axis
    with sdpa_kernel(_GPU_KERNELS) if queries.is_cuda else nullcontext():
        context = F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask, dropout_p=dropout, scale=1.0)
    # Some kernels return NaN for a query without allowed keys, and NaN * 0 is NaN.
    return context.masked_fill(~mask.any(dim=-1, keepdim=True), 0)
