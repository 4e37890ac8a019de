"""Looks for processes in /proc."""

from pathlib import Path


def children_of(parent: int) -> list[int]:
    """The running child processes of `parent`."""
    return [
        int(path.name) for path in Path("/proc").glob("[0-9]*") if not is_gone(path.name) and _parent(path) == parent
    ]


def is_gone(process: int | str) -> bool:
    """Whether a process has ended, even if its parent has not read its exit code yet."""
    return _fields(Path("/proc", str(process)))[0] == "Z"


def _parent(process: Path) -> int:
    return int(_fields(process)[1])


def _fields(process: Path) -> list[str]:
    """State, parent and the rest of /proc/NUMBER/stat; ["Z", "0"] if it is gone."""
    try:
        return (process / "stat").read_text().rsplit(")", 1)[1].split()
    except (FileNotFoundError, ProcessLookupError):
        return ["Z", "0"]
