"""What is known of text files that have not changed since they were read, so that later starts need not read them.

CACHE/files/KEY.json   of one file, by its path: what `os.stat` says of it, its SHA-256, and its number of lines if all
                       of them can be read

Delete the folder if a file may have changed without a change of its size or its times.
"""

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from nmt.config.stored import Count, Stored, read_stored
from nmt.data.cache import content_key, file_digest
from nmt.errors import Mistake
from nmt.files import write_json

# A file that changes twice within one tick of the file system's clock has the same time after both changes.
_SETTLED = 2.0  # seconds
_State = dict[str, int]


class _Record(Stored):
    size: Count
    modified: int
    changed: int
    inode: int
    sha256: str
    lines: Count | None


def file_state(path: Path) -> _State:
    """What changes whenever a file is written or replaced, even if its times are set back afterwards."""
    status = path.stat()
    return {
        "size": status.st_size,
        "modified": status.st_mtime_ns,
        "changed": status.st_ctime_ns,
        "inode": status.st_ino,
    }


def known_digest(path: Path, cache_dir: Path) -> str:
    """SHA-256 of a file's content, which is read only if the file has changed since it was last read."""
    if record := _known(path, cache_dir):
        digest: str = record["sha256"]
        return digest
    state = file_state(path)
    digest = file_digest(path)
    remember(path, cache_dir, state, digest)
    return digest


def known_lines(path: Path, cache_dir: Path) -> int | None:
    """The number of lines of a file of which every line can be read; None if that is not known."""
    record = _known(path, cache_dir)
    return record["lines"] if record else None


def remember(path: Path, cache_dir: Path, state: _State, digest: str, lines: int | None = None) -> None:
    """Records what was read from a file, which had the given state before it was read.

    A file that has changed meanwhile, or that may still change unnoticed, is not recorded.
    """
    newest = max(state["modified"], state["changed"]) / 1e9
    if file_state(path) == state and time.time() - newest > _SETTLED:
        with suppress(OSError):  # the cache may be read-only or full: then the file is read again
            write_json(_record_file(path, cache_dir), {**state, "sha256": digest, "lines": lines})


def _known(path: Path, cache_dir: Path) -> dict[str, Any] | None:
    try:
        record, state = read_stored(_record_file(path, cache_dir), _Record), file_state(path)
    except (OSError, Mistake):  # a damaged record is written again
        return None
    return record if state.items() <= record.items() else None


def _record_file(path: Path, cache_dir: Path) -> Path:
    return cache_dir / "files" / f"{content_key([os.path.abspath(path)])}.json"
