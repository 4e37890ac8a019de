"""One training at a time in a run directory."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows locks no folders
    fcntl = None  # type: ignore[assignment]


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Holds a folder for this process. The lock leaves no file and ends with the process, however that ends, also where
    processes that it has forked, such as loaders of data, live on for a while.

    Raises ValueError while another process holds the folder. On Windows nothing is locked.
    """
    if fcntl is None:
        yield
        return
    folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(folder, os.O_RDONLY)
    _held.add(handle)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ValueError(
                f"Another training is writing to {folder}; wait until it has ended, or choose another run_dir."
            ) from error
        yield
    finally:
        if handle in _held:  # not in a process that was forked meanwhile
            _held.remove(handle)
            os.close(handle)


def check_unlocked(folder: Path) -> None:
    """Raises ValueError while another process holds the folder."""
    if folder.is_dir():
        with locked(folder):
            pass


_held: set[int] = set()


def _let_go() -> None:
    """A lock is held until every process that has inherited it closes it."""
    for handle in _held:
        os.close(handle)
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)
