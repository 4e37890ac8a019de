"""The file of a run's weights, some of them in 8 bits; rejects NaN, infinite or wrongly typed ones."""

from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import safetensors.torch
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from nmt.errors import CheckFailed
from nmt.runs.memory import on_out_of_memory

_PRECISIONS = {"64-true": "F64", "64": "F64", "bf16-true": "BF16", "16-true": "F16"}
"""The number format in which each trainer.precision stores weights, unless it is float32."""


_SCALES = ".scales"
"""Ends the name of the scales of a matrix in 8 bits: one factor for each row."""
_LARGEST_NUMBER = 8  # bytes
_LARGEST_ENTRY = 4096  # bytes of the header for one tensor, with the names of the tensors that share it


class DamagedWeights(CheckFailed):
    """Weights that are NaN or infinite, or of a number format that no training run stores."""


def header_matches(model: nn.Module, file: Path) -> bool:
    """Whether a safetensors file has the names and shapes of a model's weights; the model may be on the meta device.

    Only the header of the file is read. Tensors that the model shares are stored once, and a matrix in 8 bits has
    one scale for each row.
    """
    expected = model.state_dict(keep_vars=True)
    # A file of holes may have any size, and opening it maps all of it into memory.
    most = sum(_LARGEST_NUMBER * tensor.numel() + _LARGEST_ENTRY for tensor in expected.values()) + _LARGEST_ENTRY
    if file.stat().st_size > most:
        return False
    shapes, scales = {}, {}
    try:
        with enough_memory(file), safe_open(file, framework="pt") as stored:
            names = stored.keys()
            for name in names:
                shape = tuple(stored.get_slice(name).get_shape())
                if _is_scales(name, names):
                    scales[name.removesuffix(_SCALES)] = shape
                else:
                    shapes[name] = shape
    except SafetensorError:
        return False
    if any(name not in expected or shape != tuple(expected[name].shape) for name, shape in shapes.items()):
        return False
    if any(shape != shapes.get(name, ())[:1] for name, shape in scales.items()):
        return False
    present = {id(expected[name]) for name in shapes}
    return all(id(tensor) in present for tensor in expected.values())


def load_weights(model: nn.Module, file: Path, precision: str) -> None:
    """Loads a file of weights into a model that was trained with this trainer.precision.

    Raises RuntimeError or SafetensorError if the file does not hold the weights of such a model, and DamagedWeights if
    they are NaN, infinite or in another number format.
    """
    allowed = ("F32", _PRECISIONS.get(precision, "F32"))
    with enough_memory(file), safe_open(file, "pt") as stored:
        names = stored.keys()
        for name in names:
            kind = stored.get_slice(name).get_dtype()
            if kind not in allowed and not (kind == "I8" and name + _SCALES in names):
                raise DamagedWeights(
                    f"{file} stores {name} as {kind}, but trainer.precision={precision} stores weights as "
                    f"{' or '.join(sorted(set(allowed)))}: copy the run's own file back, or train the run again."
                )
    with enough_memory(file):
        copy_weights(file, model)
        check_finite(model.state_dict(), file)


@contextmanager
def enough_memory(file: Path) -> Iterator[None]:
    """Raises CheckFailed if the memory is full before the weights in `file` have been read into a model."""
    size = file.stat().st_size
    with on_out_of_memory(
        lambda: CheckFailed(
            f"Out of memory while reading the {size:,} bytes of {file}: raise the limit of this process (ulimit -v), "
            "or use a machine with more memory."
        )
    ):
        yield


def copy_weights(file: Path, model: nn.Module) -> None:
    """Copies the weights in a file into a model with the same names and shapes (see `header_matches`)."""
    # Not strict, because a tensor that the model shares is stored under only one of its names.
    unexpected = model.load_state_dict(read_weights(file), strict=False).unexpected_keys
    if unexpected:
        raise RuntimeError(f"{file} holds {unexpected[0]}, which the model lacks.")


def read_weights(file: Path) -> dict[str, Tensor]:
    """The weights in a file by name; those in 8 bits are multiplied by the scales of their rows, in float32."""
    stored = safetensors.torch.load_file(file)
    return {
        name: tensor.float() * _beside(stored[name + _SCALES], tensor) if name + _SCALES in stored else tensor
        for name, tensor in stored.items()
        if not _is_scales(name, stored)
    }


def in_8_bits(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The weights with every matrix rounded to 8 bits, as `read_weights` reads them.

    A row is divided by its scale, which is its largest absolute value over 127, and rounded, so a weight changes by at
    most half of the scale. Vectors, such as biases and the parameters of norms, stay as they are.
    """
    stored: dict[str, Tensor] = {}
    for name, tensor in weights.items():
        if tensor.ndim < 2 or not tensor.is_floating_point():
            stored[name] = tensor
            continue
        scales = tensor.float().flatten(1).abs().amax(dim=1) / 127
        scales[scales == 0] = 1.0
        stored[name] = (tensor.float() / _beside(scales, tensor)).round().to(torch.int8)
        stored[name + _SCALES] = scales
    return stored


def _is_scales(name: str, names: Container[str]) -> bool:
    return name.endswith(_SCALES) and name.removesuffix(_SCALES) in names


def _beside(scales: Tensor, tensor: Tensor) -> Tensor:
    """The scales, shaped so that each one multiplies its row of the tensor."""
    return scales.view(-1, *[1] * (tensor.ndim - 1))


def check_finite(weights: Mapping[str, Tensor], file: Path) -> None:
    """Raises DamagedWeights if a weight, read from `file`, is NaN or infinite."""
    for name, tensor in weights.items():
        # The extremes are NaN if any number is; finding them takes a single pass and no memory.
        if tensor.is_floating_point() and tensor.numel() and not torch.stack(tensor.aminmax()).isfinite().all():
            raise DamagedWeights(
                f"{file} holds weights that are NaN or infinite ({name}): copy the run's own file back, or train the "
                "run again."
            )
