"""Caches results on disk under a key made from everything they depend on, so a cached result is never stale."""

import hashlib
import logging
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from nmt.files import atomic_folder, locked, read_json, remove_parts_of, write_json
from nmt.text.lines import readable

logger = logging.getLogger(__name__)

_RECORD = "sha256.json"
"""The digest of each file of a cached folder; written last, so that a folder without it was not made here."""


def file_digest(path: Path) -> str:
    """SHA-256 of a file's content, in hexadecimal. Raises CheckFailed if the disk cannot be read."""
    with readable(str(path)), path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def content_key(parts: Iterable[object]) -> str:
    """The first 32 hexadecimal digits of the SHA-256 of the parts' printed forms."""
    return hashlib.sha256("\n".join(map(repr, parts)).encode()).hexdigest()[:32]


@contextmanager
def making(path: Path, task: str) -> Iterator[bool]:
    """Lets one process at a time make a file or folder of the cache. Yields whether it holds a lock.

    `task` describes what it does in the message that waiting processes print, as in "tokenizing the corpus".
    """
    lock = path.with_name(f".{path.name}.lock")
    with locked(lock, wait=True, task=task) as holds_lock:
        try:
            yield holds_lock
        finally:
            with suppress(OSError):  # somebody else has removed it, or this system has no locks
                lock.rmdir()


def cached_folder(folder: Path, fill: Callable[[Path], None], task: str) -> Path:
    """Returns the folder; creates it and calls `fill` on it if it does not exist, or if a file in it has changed.

    `task` describes `fill` in the message that waiting processes print, as in "tokenizing the corpus".
    An interrupted run leaves nothing behind. If several processes need the folder at once, one of them fills it and the
    others wait; on file systems without locks each fills its own, and the first one to finish wins.
    """
    if is_whole(folder):
        with suppress(OSError):  # a process that was killed may have left its lock
            folder.with_name(f".{folder.name}.lock").rmdir()
        return folder
    with making(folder, task) as holds_lock:
        if holds_lock:
            remove_parts_of(folder)  # what a process that was killed left behind
        exists = os.path.lexists(folder)
        if not exists or not is_whole(folder):  # another process may have filled it meanwhile
            if exists:
                logger.warning("%s in the cache is damaged: it is made again.", folder)
            with atomic_folder(folder, replace=exists) as temporary:
                fill(temporary)
                write_json(temporary / _RECORD, _digests(temporary))
    return folder


def _digests(folder: Path) -> dict[str, str]:
    return {path.name: file_digest(path) for path in folder.iterdir() if path.is_file() and path.name != _RECORD}


def is_whole(folder: Path) -> bool:
    """Whether every file of a cached folder is the one that was written."""
    try:
        record = read_json(folder / _RECORD)
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(record, dict) and record.items() <= _digests(folder).items()
