"""CPU time and memory of processes that scripts have started (Linux)."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path


def cpu_seconds(process: int) -> float:
    """Seconds of CPU that a process has used so far."""
    fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_mib(process: int) -> float:
    """Resident memory of a process in MiB; 0 if it has just ended."""
    return _kilobytes(process, "status", "VmRSS:") / 1024


def proportional_mib(process: int) -> float:
    """Memory of a process in MiB, where each page that several processes share is divided among them."""
    return _kilobytes(process, "smaps_rollup", "Pss:") / 1024


def of_each(process: int, measure: Callable[[int], float]) -> Iterator[float]:
    """A measure of a process and of all that it has started; one that ends meanwhile is left out."""
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1])
        except OSError:
            continue
        children.setdefault(parent, []).append(int(folder.name))
    waiting = [process]
    while waiting:
        one = waiting.pop()
        waiting += children.get(one, [])
        try:
            yield measure(one)
        except OSError:
            continue


def _kilobytes(process: int, file: str, name: str) -> int:
    lines = Path(f"/proc/{process}/{file}").read_text(encoding="utf-8").split("\n")
    return next((int(line.split()[1]) for line in lines if line.startswith(name)), 0)
