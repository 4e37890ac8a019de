"""Matrix products that autograd and autocast handle well: a matrix per head, and torch's fused attention."""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor


def headwise_product(
    vectors: Float[Tensor, "batch heads positions dim"], matrices: Float[Tensor, "heads dim width"]
) -> Float[Tensor, "batch heads positions width"]:
    """Each head's vectors times that head's matrix, one product a head.

    `vectors @ matrices` would make a gradient of the matrices for every sentence, and copy those of several heads too.
    The matrices are multiplied as they are: autocast can keep what it makes of a parameter, but not of a view of one.
    """
    batch, _, positions, _ = vectors.shape
    products = torch.matmul(vectors.transpose(0, 1).flatten(1, 2), matrices)
    return products.unflatten(1, (batch, positions)).transpose(0, 1)


def prefers_fused(queries: Tensor, dropout: float) -> bool:
    """Whether the fused inner-product kernel wins over the formula: docs/speed.md.

    On a GPU it does. On the CPU only in float32 and without dropout: with dropout torch computes the formula too, with
    slower random numbers, and in bfloat16 the kernel's backward takes many times as long as the formula's.
    """
    on_cpu = queries.device.type == "cpu" and queries.dtype == torch.float32 and dropout == 0
    return queries.is_cuda or on_cpu


def inner_product_context(
    queries: Float[Tensor, "batch heads queries dim"],
    keys: Float[Tensor, "batch heads keys dim"],
    values: Float[Tensor, "batch heads keys value_dim"],
    mask: Bool[Tensor, "..."],
    dropout: float,
) -> Float[Tensor, "batch heads queries value_dim"]:
    """softmax(q . k) v through torch's fused kernel; a query with nothing allowed gets zeros."""
    mask = torch.atleast_2d(mask)  # the kernel does not take a row alone
    context = F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask, dropout_p=dropout, scale=1.0)
    # Some kernels give NaN for a query with nothing allowed, and NaN times 0 is NaN.
    return context.masked_fill(~mask.any(dim=-1, keepdim=True), 0)
