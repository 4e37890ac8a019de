"""What a line is, everywhere in nmt: it ends at LF or CRLF and nothing else; the one reader of text files."""

import codecs
import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedIOBase
from pathlib import Path
from typing import BinaryIO

from nmt.errors import CheckFailed, Mistake
from nmt.text.compressed import Digest, opened

logger = logging.getLogger(__name__)

ByteStream = BufferedIOBase | BinaryIO
LONGEST_LINE = 2**20
"""Bytes of a line beyond this limit are ignored."""

# The first bytes of files that are often mistaken for plain text.
_OTHER_FORMATS = {
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\xfd7zX": "xz",
    b"BZh": "bzip2",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
    b"PK\x03\x04": "a zip archive",
}
_LINE_WITH_END = re.compile(r"[^\n]*\n|[^\n]+")


def lines_with_ends(text: str) -> list[str]:
    """The lines of a text, each with its LF or CRLF. Joined, they are the text."""
    return _LINE_WITH_END.findall(text)


def bounded_lines(file: ByteStream) -> Iterator[tuple[bytes, int]]:
    """Yields each line without its LF or CRLF, cut to LONGEST_LINE bytes, and roughly how many bytes were cut off.

    The limit keeps memory bounded for a file without line ends. A line is never cut inside a UTF-8 character. A byte
    order mark at the start of the file is dropped.
    """
    first = True
    # The file is read as bytes: text mode and the text loader of datasets would also end a line at a lone carriage
    # return.
    # Three bytes more, because the first line may begin with a byte order mark, and two for the line end.
    while raw := file.readline(LONGEST_LINE + 2 + len(codecs.BOM_UTF8)):
        skipped, rest = 0, raw
        while not rest.endswith(b"\n") and len(raw) > LONGEST_LINE and (rest := file.readline(LONGEST_LINE)):
            skipped += len(_without_end(rest))
        if first and raw == codecs.BOM_UTF8:
            return  # the file contains nothing else
        line = _without_end(raw.removeprefix(codecs.BOM_UTF8) if first else raw)
        first, kept = False, line
        if len(line) > LONGEST_LINE:
            kept = line[: character_start(line, LONGEST_LINE)]
        yield kept, skipped + len(line) - len(kept)


def character_start(text: bytes, index: int) -> int:
    """Where the character that contains this byte begins; `index` - 4 if these bytes are not UTF-8."""
    start = index
    # In UTF-8, every byte of a character except the first starts with the bits 10.
    while start > index - 4 and text[start] & 0xC0 == 0x80:
        start -= 1
    return start


def may_be_cut(line: str) -> bool:
    """Whether a line is so long that it may have been cut; false for every line that was not."""
    return len(line) * 4 > LONGEST_LINE - 4 and len(line.encode()) > LONGEST_LINE - 4


def text_lines(file: ByteStream, name: str) -> Iterator[str]:
    """The lines of a UTF-8 file, without their line ends and without a byte order mark at the start of the file.

    Cuts lines longer than LONGEST_LINE, with a warning. Raises Mistake with the line number for invalid UTF-8.
    """
    with readable(name):
        for number, (raw, skipped) in enumerate(bounded_lines(file), start=1):
            if skipped:
                logger.warning("%s, line %d is too long: its last %s bytes were ignored.", name, number, f"{skipped:,}")
            try:
                yield raw.decode()
            except UnicodeDecodeError as error:
                start = raw[:4] if number == 1 else b""
                if kind := next((kind for magic, kind in _OTHER_FORMATS.items() if start.startswith(magic)), ""):
                    raise Mistake(f"{name} is {kind}, not UTF-8; use a plain text file in UTF-8.") from error
                raise Mistake(
                    f"{name}, line {number} is not UTF-8 ({error.reason}); convert the file with iconv, or fix the "
                    "line."
                ) from error


@contextmanager
def readable(name: str) -> Iterator[None]:
    """Turns a failure to read the file of that name, on a disk or a network share, into CheckFailed."""
    try:
        yield
    except OSError as error:
        # An error without a number is about the content: see nmt.text.compressed.
        if isinstance(error, (PermissionError, IsADirectoryError)) or error.errno is None:
            raise
        raise CheckFailed(f"{name} cannot be read ({error.strerror}); check the disk, or use a copy.") from error


def iter_lines(path: Path, digest: Digest | None = None) -> Iterator[str]:
    """The lines of a UTF-8 file, unchanged except for line ends (LF or CRLF) and a byte order mark at the start.

    A file that ends in .gz, .bz2, .xz or .zst is unpacked. After the last line, `digest` has been updated with all
    bytes of the file.

    A lone carriage return, U+0085, U+2028, a form feed or NUL stays inside its line. Raises Mistake for a missing or
    an empty file, and whatever `text_lines` raises.
    """
    if not path.is_file():
        raise Mistake(f"There is no file {path}; check the path.")
    empty = True
    # `readable` encloses `opened`, which at its end reads the rest of the file for the digest.
    with readable(str(path)), opened(path, digest) as file:
        for line in text_lines(file, str(path)):
            empty = False
            yield line
    if empty:
        raise Mistake(f"{path} is empty; use a file with at least one line.")


def read_lines(path: Path) -> list[str]:
    """The lines that `iter_lines` yields, as a list."""
    return list(iter_lines(path))


def _without_end(line: bytes) -> bytes:
    # Not rstrip, which would also take a carriage return in front of the line end.
    return line.removesuffix(b"\n").removesuffix(b"\r") if line.endswith(b"\n") else line
