"""Opens text files that may be compressed."""

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, BinaryIO, Protocol, cast, runtime_checkable

from nmt.errors import Mistake


@runtime_checkable
class Digest(Protocol):
    """What hashlib makes."""

    def update(self, data: memoryview, /) -> None: ...


def _open_zstandard(file: io.BufferedReader) -> object:
    """Opens .zst with pyarrow; Python's own library reads it only from 3.14 on."""
    import pyarrow  # takes a while to import

    return io.BufferedReader(pyarrow.CompressedInputStream(pyarrow.PythonFile(file, mode="r"), "zstd"), _BLOCK)


_BLOCK = 2**20
_OPEN: dict[str, Callable[[io.BufferedReader], object]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
    ".zst": _open_zstandard,
}


COMPRESSED = tuple(_OPEN)
"""The endings of compressed files."""


def uncompressed(path: Path) -> Path:
    """The path without the ending of a compressed file: a.en.gz becomes a.en."""
    return path.with_suffix("") if compression(path) else path


def compression(path: Path) -> str:
    """The ending of a compressed file's name, such as '.gz'; '' for any other file."""
    return path.suffix if path.suffix in _OPEN else ""


class _Hashed(io.RawIOBase):
    """A file whose bytes go into a digest as they are read."""

    def __init__(self, file: io.BufferedReader, digest: Digest) -> None:
        self._file, self._digest = file, digest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = self._file.readinto(buffer)
        self._digest.update(memoryview(buffer)[:count])
        return count


@contextmanager
def opened(path: Path, digest: Digest | None = None) -> Iterator[BinaryIO]:
    """A file as a stream of bytes; .gz, .bz2, .xz and .zst are unpacked as they are read.

    At the end of the block, `digest` has been updated with all bytes of the file as it is on the disk. A compressed
    file that turns out to be damaged or cut short inside the block raises Mistake.
    """
    with path.open("rb") as file:
        stored: Any = io.BufferedReader(_Hashed(file, digest), _BLOCK) if digest else file
        with _unpacked(path, stored) if compression(path) else nullcontext(stored) as stream:
            yield stream
            # Read the rest for the digest before the stream closes the file.
            while digest and stored.read(_BLOCK):
                pass


@contextmanager
def _unpacked(path: Path, stored: io.BufferedReader) -> Iterator[BinaryIO]:
    try:
        with cast(BinaryIO, _OPEN[path.suffix](stored)) as stream:
            yield stream
    except (EOFError, zlib.error, lzma.LZMAError, OSError) as error:
        # The system's errors have a number; those of a file in the wrong format do not.
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise Mistake(f"{path} is damaged or cut short ({error}): copy it again.") from error
