"""Results on disk under a key made from all that they depend on, so that they can be stale in no way."""

import hashlib
import shutil
import uuid
from collections.abc import Callable, Iterable
from pathlib import Path


def file_digest(path: Path) -> str:
    """SHA-256 of a file's content, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def content_key(parts: Iterable[object]) -> str:
    """SHA-256, in hexadecimal and cut to 32 digits, of the printed forms of the parts."""
    return hashlib.sha256("\n".join(map(repr, parts)).encode()).hexdigest()[:32]


def cached_folder(folder: Path, fill: Callable[[Path], None]) -> Path:
    """The folder, filled by `fill` if it does not exist.

    It is filled under another name and then renamed, so an interrupted run leaves no half of it, and of several
    processes at work at once the first one's result stays.
    """
    if folder.is_dir():
        return folder
    beside = folder.with_name(f".{folder.name}.{uuid.uuid4().hex}")
    beside.mkdir(parents=True)
    try:
        fill(beside)
        _rename_unless_there(beside, folder)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return folder


def _rename_unless_there(beside: Path, folder: Path) -> None:
    try:
        beside.rename(folder)
    except OSError:
        if not folder.is_dir():
            raise
