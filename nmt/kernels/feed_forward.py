"""A feed-forward net whose ReLU and dropout work in place."""

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from nmt.kernels.dropout import Dropout


def feed_forward(
    x: Float[Tensor, "batch n dim"], inner: nn.Module, outer: nn.Module, dropout: Dropout
) -> Float[Tensor, "batch n dim"]:
    """outer(dropout(max(0, inner(x)))) for linear layers `inner` and `outer`.

    ReLU and dropout overwrite the result of `inner`, and the scale of dropout is multiplied into the weights of
    `outer`, because there are fewer weights than activations.
    """
    hidden, scale = dropout.of_relu(inner(x.flatten(0, -2)))
    if scale == 1:  # as in search, where the layers may be quantized
        return outer(hidden).unflatten(0, x.shape[:-1])
    weight, bias = outer.parameters()
    return F.linear(hidden, weight * scale, bias).unflatten(0, x.shape[:-1])
