"""Averages of weights: over training steps (EMA), and over several checkpoints."""

from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from lightning.pytorch.callbacks import WeightAveraging
from torch import Tensor

from nmt.errors import Mistake
from nmt.runs.weights import check_finite
from nmt.training.checkpoints import load_checkpoint


class EMAWeightAveraging(WeightAveraging):
    """Lightning's callback of the same name, with the warm-up that `moving_average` describes."""

    def __init__(self, decay: float) -> None:
        super().__init__(use_buffers=False, multi_avg_fn=moving_average(decay))


def moving_average(decay: float) -> Callable[[list[Tensor], list[Tensor], Tensor], None]:
    """Returns a function that updates exponential moving averages: average <- d average + (1 - d) weight.

    After n earlier updates, d = min(decay, (1 + n) / (10 + n)), as in TensorFlow's
    ExponentialMovingAverage(num_updates). Until `decay` is reached, six sevenths of the average come from the last
    fifth of the updates, so that the initial weights do not dominate a short run.
    """

    @torch.no_grad()
    def update(averages: list[Tensor], weights: list[Tensor], number: Tensor) -> None:
        n = int(number)
        torch._foreach_lerp_(averages, weights, 1 - min(decay, (1 + n) / (10 + n)))

    return update


def mean_weights(files: Sequence[Path]) -> dict[str, Tensor]:
    """A state_dict with the floating-point tensors averaged over the checkpoints, and the others taken from the first.

    Means are computed in float64. Raises Mistake if there are no files, if the checkpoints have different tensors,
    or if a file is not a checkpoint, and DamagedWeights if a weight is NaN or infinite.
    """
    if not files:
        raise Mistake("There are no checkpoints to average: name at least one file.")
    states = [dict(load_checkpoint(file)["state_dict"]) for file in files]
    for file, state in zip(files, states, strict=True):
        check_finite(state, file)
    first = {name: (tensor.dtype, tensor.shape) for name, tensor in states[0].items()}
    for file, state in zip(files[1:], states[1:], strict=True):
        if {name: (tensor.dtype, tensor.shape) for name, tensor in state.items()} != first:
            raise Mistake(f"{file} and {files[0]} have different tensors: average only checkpoints of the same run.")
    return {name: _mean([state[name] for state in states]) for name in states[0]}


def _mean(tensors: Sequence[Tensor]) -> Tensor:
    if not tensors[0].is_floating_point():
        return tensors[0]
    total = sum((tensor.double() for tensor in tensors[1:]), tensors[0].double())
    return (total / len(tensors)).to(tensors[0].dtype)
