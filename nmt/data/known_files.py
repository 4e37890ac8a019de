"""Digests and line counts of unchanged text files, so later starts do not read them again.

CACHE/files/KEY.json   of one file, by its path: what `os.stat` says of it, its SHA-256, and its number of lines if all
                       of them can be read and none was cut

Delete the folder if a file may have changed without a change of its size or its times. On a network file system, a
client can see a change late, and until then takes the file for unchanged. What is filled into the cache is therefore
read through `Sources`, which compares it with the digests in its key.
"""

import hashlib
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from nmt.config.stored import Count, Stored, read_stored
from nmt.data.cache import content_key, file_digest
from nmt.errors import CheckFailed, Mistake
from nmt.files import write_json
from nmt.text.lines import iter_lines, may_be_cut

ReadLines = Callable[[Path], Iterator[str]]
"""A function that yields a file's lines: `iter_lines`, or one that also checks or records the file."""

# A file that changes twice within one tick of the file system's clock has the same time after both changes.
_SETTLED = 2.0  # seconds
# On Windows, st_ctime is the time of creation, so a change whose times are set back goes unnoticed.
_CHANGES_ARE_DATED = os.name != "nt"


class _Record(Stored):
    size: Count
    modified: int
    changed: int
    inode: int
    sha256: str
    lines: Count | None


class _State(NamedTuple):
    values: dict[str, int]
    """They change whenever the file is written or replaced, even if its times are set back afterwards."""
    settled: bool
    """Whether any later change gives the file different times."""


class Sources:
    """The files that a cached result is made from, and their digests, which belong in its key."""

    def __init__(self, paths: Iterable[Path], cache_dir: Path) -> None:
        self._cache_dir = cache_dir
        self.digests = {path: known_digest(path, cache_dir) for path in paths}

    def lines(self, path: Path) -> Iterator[str]:
        """Yields the lines of a file. Raises whatever `iter_lines` and, after the last line, `check` raise."""
        digest = hashlib.sha256()
        yield from iter_lines(path, digest)
        self.check(path, digest.hexdigest())

    def check(self, path: Path, digest: str) -> None:
        """Raises CheckFailed, and forgets the file, if what was read does not have the digest that is in the key."""
        if digest != self.digests[path]:
            with suppress(OSError):  # the cache may be read-only
                _record_file(path, self._cache_dir).unlink()
            raise CheckFailed(
                f"{path} has changed since the command began, or without a change of its size and times. Run the "
                "command again."
            )


def known_digest(path: Path, cache_dir: Path) -> str:
    """SHA-256 of a file's content, which is read only if the file has changed since it was last read."""
    if record := _known(path, cache_dir):
        digest: str = record["sha256"]
        return digest
    state = _state(path)
    digest = file_digest(path)
    _remember(path, cache_dir, state, digest)
    return digest


def known_lines(path: Path, cache_dir: Path) -> int | None:
    """The number of lines of a file of which every line can be read; None if that is not known."""
    record = _known(path, cache_dir)
    return record["lines"] if record else None


def remembered_lines(path: Path, cache_dir: Path) -> Iterator[str]:
    """Yields the lines of a file, and records it after the last one. Raises whatever `iter_lines` raises."""
    state, digest, count, cut = _state(path), hashlib.sha256(), 0, False
    for line in iter_lines(path, digest):
        count += 1
        cut = cut or may_be_cut(line)
        yield line
    # Later starts must read a file with a line that was cut, to warn of it again.
    _remember(path, cache_dir, state, digest.hexdigest(), None if cut else count)


def count_lines(path: Path, cache_dir: Path | None) -> int:
    """The number of lines of a file, all of which can be read. Raises whatever `iter_lines` raises.

    With `cache_dir`, the file is read only if it has changed since it was last read.
    """
    if cache_dir is None:
        return sum(1 for _ in iter_lines(path))
    known = known_lines(path, cache_dir)
    return sum(1 for _ in remembered_lines(path, cache_dir)) if known is None else known


def _state(path: Path) -> _State | None:
    """The state of a file now; None if there is no such file."""
    now = time.time()  # first: what changes from now on gets this time or a later one
    try:
        status = path.stat()
    except OSError:
        return None
    values = {
        "size": status.st_size,
        "modified": status.st_mtime_ns,
        "changed": status.st_ctime_ns,
        "inode": status.st_ino,
    }
    return _State(values, now - max(status.st_mtime, status.st_ctime) > _SETTLED)


def _remember(path: Path, cache_dir: Path, state: _State | None, digest: str, lines: int | None = None) -> None:
    """Records what was read from a file, which had the given state before it was read.

    A file that has changed meanwhile, or that may have changed unnoticed, is not recorded.
    """
    if not (_CHANGES_ARE_DATED and state and state.settled):
        return
    after = _state(path)
    if after and after.values == state.values:
        with suppress(OSError):  # the cache may be read-only or full: then the file is read again
            write_json(_record_file(path, cache_dir), {**state.values, "sha256": digest, "lines": lines})


def _known(path: Path, cache_dir: Path) -> dict[str, Any] | None:
    try:
        record = read_stored(_record_file(path, cache_dir), _Record)
    except (OSError, Mistake):  # a damaged record is written again
        return None
    state = _state(path)
    return record if state and state.values.items() <= record.items() else None


def _record_file(path: Path, cache_dir: Path) -> Path:
    return cache_dir / "files" / f"{content_key([os.path.abspath(path)])}.json"
