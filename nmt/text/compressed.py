"""Opens text files that may be compressed."""

import bz2
import gzip
import lzma
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from nmt.errors import Mistake

_OPEN: dict[str, Callable[[Path], object]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


COMPRESSED = tuple(_OPEN)
"""The endings of compressed files."""


def uncompressed(path: Path) -> Path:
    """The path without the ending of a compressed file: a.en.gz becomes a.en."""
    return path.with_suffix("") if compression(path) else path


def compression(path: Path) -> str:
    """The ending of a compressed file's name, such as '.gz'; '' for any other file."""
    return path.suffix if path.suffix in _OPEN else ""


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """A file as a stream of bytes; .gz, .bz2 and .xz are unpacked as they are read.

    A compressed file that turns out to be damaged or cut short inside the block raises Mistake.
    """
    if not compression(path):
        with path.open("rb") as file:
            yield file
        return
    try:
        with cast(BinaryIO, _OPEN[path.suffix](path)) as stream:
            yield stream
    except (EOFError, zlib.error, lzma.LZMAError, OSError) as error:
        # The system's errors have a number; those of a file in the wrong format do not.
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise Mistake(f"{path} is damaged or cut short ({error}): copy it again.") from error
