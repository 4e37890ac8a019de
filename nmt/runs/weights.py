"""Reads the weights of a finished run, and rejects NaN, infinite or wrongly typed ones."""

from collections.abc import Mapping
from pathlib import Path

import safetensors.torch
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from nmt.errors import CheckFailed

_PRECISIONS = {"64-true": "F64", "64": "F64", "bf16-true": "BF16", "16-true": "F16"}
"""The number format in which each trainer.precision stores weights, unless it is float32."""


class DamagedWeights(CheckFailed):
    """Weights that are NaN or infinite, or of a number format that no training run stores."""


def header_matches(model: nn.Module, file: Path) -> bool:
    """Whether a safetensors file has the names and shapes of a model's weights; the model may be on the meta device.

    Only the header of the file is read. Tensors that the model shares are stored once.
    """
    expected = model.state_dict(keep_vars=True)
    try:
        with safe_open(file, framework="pt") as stored:
            shapes = {name: tuple(stored.get_slice(name).get_shape()) for name in stored.keys()}  # noqa: SIM118
    except SafetensorError:
        return False
    if any(name not in expected or shape != tuple(expected[name].shape) for name, shape in shapes.items()):
        return False
    present = {id(expected[name]) for name in shapes}
    return all(id(tensor) in present for tensor in expected.values())


def load_weights(model: nn.Module, file: Path, precision: str) -> None:
    """Loads a file of weights into a model that was trained with this trainer.precision.

    Raises RuntimeError or SafetensorError if the file does not hold the weights of such a model, and DamagedWeights if
    they are NaN, infinite or in another number format.
    """
    allowed = ("F32", _PRECISIONS.get(precision, "F32"))
    with safe_open(file, "pt") as stored:
        for name in stored.keys():  # noqa: SIM118
            if (kind := stored.get_slice(name).get_dtype()) not in allowed:
                raise DamagedWeights(
                    f"{file} stores {name} as {kind}, but trainer.precision={precision} stores weights as "
                    f"{' or '.join(sorted(set(allowed)))}: copy the run's own file back, or train the run again."
                )
    safetensors.torch.load_model(model, file)
    check_finite(model.state_dict(), file)


def check_finite(weights: Mapping[str, Tensor], file: Path) -> None:
    """Raises DamagedWeights if a weight, read from `file`, is NaN or infinite."""
    for name, tensor in weights.items():
        # The extremes are NaN if any number is; finding them takes a single pass and no memory.
        if tensor.is_floating_point() and tensor.numel() and not torch.stack(tensor.aminmax()).isfinite().all():
            raise DamagedWeights(
                f"{file} holds weights that are NaN or infinite ({name}): copy the run's own file back, or train the "
                "run again."
            )
