"""Files and folders: written whole or not at all, locked, and checked before anything is computed."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

try:
    import fcntl
except ImportError:  # Windows locks no folders
    fcntl = None  # type: ignore[assignment]


PART = ".part"


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


def write_json(path: Path, content: Any) -> None:
    """Replaces a JSON file by a whole one."""
    text = json.dumps(content, indent=2, ensure_ascii=False)
    write_bytes(path, f"{text}\n".encode())


def write_bytes(path: Path, content: bytes) -> None:
    """Writes a file whole or not at all, and its folder if need be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as part:
        part.write_bytes(content)


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """A file beside `path` to be written, which takes its place at the end, or is gone when writing failed."""
    part = path.with_name(path.name + PART)
    try:
        yield part
        with part.open("rb") as written:
            os.fsync(written.fileno())  # a power cut may come
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    os.replace(part, path)


def existing_file(key: str, value: Any) -> Path:
    """The file that a key names. Raises FileNotFoundError naming both when there is none."""
    path = Path(str(value))
    if path.is_dir():
        raise FileNotFoundError(f"{key} is {path}, which is a folder; give a file.")
    if not path.is_file():
        raise FileNotFoundError(f"{key} is {path}, and there is no such file; give the path of one.")
    return path


def folder_to_write(key: str, value: Any) -> Path:
    """The folder that a key names, made if need be. Raises ValueError where it cannot be made, or written to."""
    path = Path(str(value))
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"{key} is {path}, which cannot be made a folder ({error.strerror}); give another.") from error
    check_writable(key, path)
    return path


def cache_folder(value: Any) -> Path:
    """The folder of cache_dir, made if need be. One that is there may be read-only: what it holds is only read."""
    path = Path(str(value))
    return path if path.is_dir() else folder_to_write("cache_dir", path)


def check_folder(key: str, value: Any) -> None:
    """Raises ValueError when a key names what is no folder, and can be none because a file is in the way."""
    path, there = Path(str(value)), _nearest(value)
    if not there.is_dir():
        raise ValueError(f"{key} is {path}, but {there} is a file; give another folder.")


def check_writable(key: str, value: Any) -> None:
    """Raises ValueError as check_folder does, and where nothing may be written to the folder that a key names."""
    check_folder(key, value)
    there = _nearest(value)
    if not os.access(there, os.W_OK | os.X_OK):
        raise ValueError(f"{key} is {value}, and {there} may not be written to; give another folder.")


def _nearest(value: Any) -> Path:
    """The path itself, or the first one above it that is there."""
    path = Path(str(value))
    for place in (path, *path.parents):
        try:
            if place.exists():
                return place
        except PermissionError:  # below a folder that may not be searched
            continue
    return Path(path.anchor)
