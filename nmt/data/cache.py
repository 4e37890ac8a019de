"""Caches results on disk under a key made from everything they depend on, so a cached result is never stale."""

import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path

from nmt.files import atomic_folder


def file_digest(path: Path) -> str:
    """SHA-256 of a file's content, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def content_key(parts: Iterable[object]) -> str:
    """The first 32 hexadecimal digits of the SHA-256 of the parts' printed forms."""
    return hashlib.sha256("\n".join(map(repr, parts)).encode()).hexdigest()[:32]


def cached_folder(folder: Path, fill: Callable[[Path], None]) -> Path:
    """Returns the folder; creates it and calls `fill` on it if it does not exist.

    An interrupted run leaves nothing behind. If several processes fill it at once, the first one to finish wins.
    """
    if not folder.is_dir():
        with atomic_folder(folder) as temporary:
            fill(temporary)
    return folder
