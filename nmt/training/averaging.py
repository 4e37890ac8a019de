"""The mean of the weights of several checkpoints."""

from collections.abc import Sequence
from pathlib import Path

from torch import Tensor

from nmt.training.checkpoints import load_checkpoint


def mean_weights(files: Sequence[Path]) -> dict[str, Tensor]:
    """The state_dict whose floating-point tensors are the means over the checkpoints; all else is that of the first.

    Means are taken in float64. Raises ValueError for no files, and where the checkpoints hold other tensors or are
    none.
    """
    if not files:
        raise ValueError("There are no checkpoints to average: give at least one file.")
    states = [dict(load_checkpoint(file)["state_dict"]) for file in files]
    first = {name: (tensor.dtype, tensor.shape) for name, tensor in states[0].items()}
    for file, state in zip(files[1:], states[1:], strict=True):
        if {name: (tensor.dtype, tensor.shape) for name, tensor in state.items()} != first:
            raise ValueError(f"{file} and {files[0]} hold different weights: average checkpoints of one training.")
    return {name: _mean([state[name] for state in states]) for name in states[0]}


def _mean(tensors: Sequence[Tensor]) -> Tensor:
    if not tensors[0].is_floating_point():
        return tensors[0]
    total = sum((tensor.double() for tensor in tensors[1:]), tensors[0].double())
    return (total / len(tensors)).to(tensors[0].dtype)
