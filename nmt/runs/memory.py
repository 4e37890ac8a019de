"""Refuses a model whose weights do not fit into memory, before they are allocated, and explains failed allocations."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import nn

from nmt.errors import CheckFailed, Mistake

# Where Linux limits the memory of a container: version 2 of control groups, then version 1.
_CONTAINER = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


class OutOfMemory(CheckFailed):
    """An allocation failed. Commands that know a better remedy than the message replace it (`on_out_of_memory`)."""


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
    if sys.platform == "win32":
        return sys.maxsize  # unknown
    import resource

    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    process, _ = resource.getrlimit(resource.RLIMIT_AS)
    written = [file.read_text().strip() for file in map(Path, _CONTAINER) if file.is_file()]
    container = [int(limit) for limit in written if limit.isdecimal()]  # 'max' is no limit
    return min([machine, *container, *([] if process == resource.RLIM_INFINITY else [process])])


@contextmanager
def on_out_of_memory(explained: Callable[[], Exception]) -> Iterator[None]:
    """If an allocation on the device or on the CPU fails inside the block, raises what `explained` returns instead.

    The outermost of nested blocks decides if the inner ones raise OutOfMemory.
    """
    try:
        yield
    except Exception as error:
        if not _is_out_of_memory(error):
            raise
        raise explained() from error


def _is_out_of_memory(error: Exception) -> bool:
    if isinstance(error, torch.OutOfMemoryError | MemoryError | OutOfMemory):
        return True
    # torch has no class for a failed allocation on the CPU. Most allocations succeed on Linux, where the kernel kills
    # the process when it uses the memory.
    return isinstance(error, RuntimeError) and any(
        text in str(error) for text in ("DefaultCPUAllocator: can't allocate memory", "std::bad_alloc")
    )
