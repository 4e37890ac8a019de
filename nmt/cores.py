"""The CPU cores of this process, and the threads that it is meant to use."""

import os
import platform
from contextlib import suppress
from pathlib import Path

from nmt.errors import Mistake


def usable_cores() -> int:
    """The number of cores that this process may use, which can be fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):  # not on macOS and Windows
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def threads_of_process(default: int = 1) -> int:
    """The threads of each process by OMP_NUM_THREADS, if it is set. Raises Mistake if that is no such number."""
    given = os.environ.get("OMP_NUM_THREADS") or str(default)
    # A list has the threads of nested regions, too, of which the first is that of the process.
    first = given.partition(",")[0].strip()
    if not (first.isascii() and first.isdigit() and int(first)):
        raise Mistake(f"OMP_NUM_THREADS is '{given}'; it must be an integer of at least 1.")
    return int(first)


def processor() -> str:
    """The model of the CPU and, on Linux, its instructions, which decide what number formats are fast."""
    names = ("model name", "flags", "Features", "CPU part")
    lines = list[str]()
    with suppress(OSError):  # not Linux
        # One block of lines for each core, of which the first is enough.
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").partition("\n\n")[0].split("\n")
    described = [line for line in lines if line.partition(":")[0].strip() in names]
    return " ".join([platform.machine(), platform.processor(), *described])
