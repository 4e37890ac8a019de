"""The product of each head's vectors with that head's matrix."""

import torch
from jaxtyping import Float
from torch import Tensor


def headwise_product(
    vectors: Float[Tensor, "batch heads positions dim"], matrices: Float[Tensor, "heads dim width"]
) -> Float[Tensor, "batch heads positions width"]:
    """vectors @ matrices, computed as one matrix product per head.

    The plain product allocates a gradient of the matrices for every sentence and, if there are several heads, copies
    the matrices. The product uses the parameter itself, because autocast caches the cast of a parameter but not the
    casts of its views.
    """
    batch, _, positions, _ = vectors.shape
    products = torch.matmul(vectors.transpose(0, 1).flatten(1, 2), matrices)
    return products.unflatten(1, (batch, positions)).transpose(0, 1)
