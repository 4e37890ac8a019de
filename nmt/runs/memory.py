"""Refuses a model before its weights are allocated, if they do not fit into memory or into their file."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import torch
from safetensors import SafetensorError, safe_open
from torch import nn

from nmt.errors import Mistake

Built = TypeVar("Built", bound=nn.Module)

# Where Linux limits the memory of a container: version 2 of control groups, then version 1.
_CONTAINER = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def within_memory(build: Callable[[], Built]) -> Built:
    """What `build` makes, after a trial on the meta device, which allocates nothing.

    Raises Mistake if the weights are larger than the memory.
    """
    with torch.device("meta"):
        require_memory(build())
    return build()


def require_memory(model: nn.Module) -> None:
    """Raises Mistake if the weights of a model, which may be on the meta device, are larger than the memory."""
    parameters = list(model.parameters())
    needed = sum(parameter.numel() * parameter.element_size() for parameter in parameters)
    if needed > (available := largest_memory()):
        raise Mistake(
            f"The model has {sum(parameter.numel() for parameter in parameters):,} parameters, which need "
            f"{needed / 2**30:,.0f} GiB, but at most {available / 2**30:,.1f} GiB can be used here: choose smaller "
            "widths, such as model.dim, or fewer layers."
        )


def largest_memory() -> int:
    """The memory that this process can use at most, in bytes: that of the machine, or a lower limit set for it."""
    import resource

    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    process, _ = resource.getrlimit(resource.RLIMIT_AS)
    written = [file.read_text().strip() for file in map(Path, _CONTAINER) if file.is_file()]
    container = [int(limit) for limit in written if limit.isdecimal()]  # 'max' is no limit
    return min([machine, *container, *([] if process == resource.RLIM_INFINITY else [process])])


def check_header(model: nn.Module, weights: Path, refusal: Mistake) -> None:
    """Raises `refusal` unless a safetensors file has the weights of a model, which may be on the meta device.

    Only the header of the file is read. Tensors that the model shares are stored once.
    """
    expected = model.state_dict(keep_vars=True)
    try:
        with safe_open(weights, framework="pt") as file:
            stored = {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise refusal from error
    differ = any(name not in expected or shape != tuple(expected[name].shape) for name, shape in stored.items())
    present = {id(expected[name]) for name in stored if name in expected}
    if differ or any(id(tensor) not in present for tensor in expected.values()):
        raise refusal
