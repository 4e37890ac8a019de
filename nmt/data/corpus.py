"""Aligned plain-text files: PREFIX.en and PREFIX.vi, a sentence a line; lines of equal number are translations."""

import difflib
import logging
import os
import re
from collections.abc import Iterable, Iterator
from io import BufferedIOBase
from itertools import islice, zip_longest
from pathlib import Path
from typing import BinaryIO, NamedTuple

from nmt.config.direction import Direction
from nmt.text import normalize

logger = logging.getLogger(__name__)

ByteStream = BufferedIOBase | BinaryIO
LONGEST_LINE = 2**20
"""Bytes of the longest line that is read."""

_OTHER_FILES = {
    b"\x1f\x8b": "a file of gzip",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
    b"PK\x03\x04": "a zip archive",
}
"""How files begin that are often given for plain text."""

_MANY_FILES = 10_000
"""How many names of a folder are looked at for what a missing file may mean."""

_SAMPLE = "sample:"
_PACKAGE = Path(__file__).resolve().parents[1]
# The wheel carries the sample inside the package, a checkout beside it.
_SAMPLE_FOLDERS = (_PACKAGE / "_sample", _PACKAGE.parent / "data" / "sample")


class Pairs(NamedTuple):
    """Line n of `source` and line n of `target` are translations of each other."""

    source: list[str]
    target: list[str]


def bounded_lines(file: ByteStream) -> Iterator[tuple[bytes, int]]:
    """The lines of a file without their LF or CRLF, and about how many bytes beyond LONGEST_LINE were left out of each.

    So that a file without line ends, or with a huge line, needs no more memory than others. A line is cut between two
    characters of UTF-8.
    """
    while raw := file.readline(LONGEST_LINE + 2):
        skipped, rest = 0, raw
        while not rest.endswith(b"\n") and len(raw) > LONGEST_LINE and (rest := file.readline(LONGEST_LINE)):
            skipped += len(rest.rstrip(b"\r\n"))
        line = raw.rstrip(b"\r\n")
        kept = line
        if len(line) > LONGEST_LINE:
            end = LONGEST_LINE
            # The bytes of a character that follow its first one begin with the bits 10.
            while end > LONGEST_LINE - 4 and line[end] & 0xC0 == 0x80:
                end -= 1
            kept = line[:end]
        yield kept, skipped + len(line) - len(kept)


def text_lines(file: ByteStream, name: str) -> Iterator[str]:
    """The lines of a UTF-8 file without their LF or CRLF and a byte order mark at the start; a huge one loses its end,
    with a warning. Raises ValueError naming the one that is not UTF-8.
    """
    for number, (raw, skipped) in enumerate(bounded_lines(file), start=1):
        if skipped:
            logger.warning("%s, line %d: too long, its last %s bytes are left out.", name, number, f"{skipped:,}")
        try:
            yield raw.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            kind = next((kind for start, kind in _OTHER_FILES.items() if number == 1 and raw.startswith(start)), None)
            convert = f"({error.reason}); convert it with iconv from its encoding, or mend the line."
            what = f"but {kind}; give plain text in UTF-8." if kind else convert
            raise ValueError(f"{name}, line {number}: not UTF-8 {what}") from error


def iter_lines(path: Path) -> Iterator[str]:
    """The lines of a UTF-8 file, unchanged but for their ends (LF or CRLF) and a byte order mark at the start.

    Only a line feed ends a line: a lone carriage return, NUL or U+2028 stays inside its line.
    Of a line only LONGEST_LINE bytes are read, with a warning. Raises FileNotFoundError, and ValueError for an empty
    file or, naming the line, for bytes that are not UTF-8.
    """
    if not path.is_file():
        raise FileNotFoundError(f"No file {path}{_what_there_is(path)}")
    empty = True
    with path.open("rb") as file:
        for line in text_lines(file, str(path)):
            empty = False
            yield line
    if empty:
        raise ValueError(f"{path} is empty; give a file with at least one line.")


def _what_there_is(path: Path) -> str:
    """The end of the sentence that a corpus has no such file: what of it there is, or how a corpus is named.

    A path without an extension is no file of a corpus.
    """
    if not path.suffix and not path.name.startswith("."):
        return "; give the path of a text file."
    # my/ is the prefix of my/.en
    prefix, end = (path.with_suffix(""), path.suffix) if path.suffix else (path.parent, path.name)
    language = end[1:]
    if prefix.is_dir():
        inside = [name.removesuffix(end) for name in _names(prefix) if name.endswith(end) and name != end]
        example = f", such as {prefix / inside[0]}" if inside else ""
        return (
            f": {prefix} is a folder; a corpus is named by what its files have in common before .{language}{example}."
        )
    shorter = prefix.with_suffix("")
    if prefix.is_file() and shorter.with_name(shorter.name + end).is_file():
        return f": a corpus is named without its extension, as in {shorter}."
    names = _names(prefix.parent)
    there = [name for name in names if re.fullmatch(rf"{re.escape(prefix.name)}\.[a-z]{{2,3}}", name)]
    if len(there) == 2:
        one, other = (name.removeprefix(f"{prefix.name}.") for name in there)
        return f", but {' and '.join(there)}: give direction={one}-{other} or {other}-{one}, as the extensions are."
    if len(there) > 2:
        return f", but {' and '.join(there)}: direction= has the languages as the files have them for extensions."
    stems = [name.removesuffix(end) for name in names if name.endswith(end)]
    if meant := difflib.get_close_matches(prefix.name, stems, n=1):
        return f". Did you mean {prefix.with_name(meant[0])}?"
    return (
        f": a corpus PREFIX is the files PREFIX.{language} and that of the other language; "
        "'python -m nmt.download' fetches published ones, hub:OWNER/SET for data=hub data.name=OWNER/SET."
    )


def _names(folder: Path) -> list[str]:
    """The first names in a folder, sorted; none where it cannot be read."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in islice(entries, _MANY_FILES))
    except OSError:
        return []


def read_lines(path: Path) -> list[str]:
    """All of `iter_lines`."""
    return list(iter_lines(path))


def file_pair(prefix: str, direction: Direction) -> tuple[Path, Path]:
    """Paths of the source and the target file; 'sample:NAME' is a part of the embedded corpus.

    Raises FileNotFoundError for the name of an unknown part, naming those there are.
    """
    is_sample = prefix.startswith(_SAMPLE)
    stem = _sample_stem(prefix.removeprefix(_SAMPLE), direction.source) if is_sample else prefix
    return Path(f"{stem}.{direction.source}"), Path(f"{stem}.{direction.target}")


def alignment_file(prefix: str, direction: Direction) -> Path | None:
    """The word alignments that belong to a corpus, PREFIX.en-vi.align, or None.

    For vi-en that same file is found, and its reader has to flip it: its name does not end in '.vi-en.align'.
    """
    stem = file_pair(prefix, direction)[0].with_suffix("")
    forth, back = f"{direction.source}-{direction.target}", f"{direction.target}-{direction.source}"
    found = (stem.with_name(f"{stem.name}.{way}.align") for way in (forth, back))
    return next((path for path in found if path.is_file()), None)


def check_files(prefixes: Iterable[str], direction: Direction) -> None:
    """Reads all files once. Raises as `iter_parallel`."""
    for prefix in prefixes:
        for _ in iter_parallel(*file_pair(prefix, direction)):
            pass


def read_aligned(prefix: str, direction: Direction) -> Pairs:
    """The lines of a corpus as they are. Raises as `read_parallel`."""
    return read_parallel(*file_pair(prefix, direction))


def iter_parallel(source_path: Path, target_path: Path) -> Iterator[tuple[str, str]]:
    """The lines of two files as they are, pair by pair. Raises as `iter_lines`, and ValueError after the last pair when
    the line counts differ.
    """
    source, target = iter_lines(source_path), iter_lines(target_path)
    for number, (source_line, target_line) in enumerate(zip_longest(source, target)):
        if source_line is None or target_line is None:
            longer = number + 1 + sum(1 for _ in (target if source_line is None else source))
            lengths = (number, longer) if source_line is None else (longer, number)
            raise ValueError(
                f"{source_path} has {lengths[0]} lines but {target_path} has {lengths[1]}; "
                "line n of one must be the translation of line n of the other."
            )
        yield source_line, target_line


def read_parallel(source_path: Path, target_path: Path) -> Pairs:
    """All of `iter_parallel`."""
    pairs = Pairs([], [])
    for source, target in iter_parallel(source_path, target_path):
        pairs.source.append(source)
        pairs.target.append(target)
    return pairs


def read_pairs(prefix: str, direction: Direction) -> Pairs:
    """The lines of both files, normalised; none is dropped, line n stays line n. Raises as `read_aligned`."""
    source, target = read_aligned(prefix, direction)
    return Pairs([normalize(line) for line in source], [normalize(line) for line in target])


def _sample_stem(name: str, language: str) -> Path:
    folder = next((folder for folder in _SAMPLE_FOLDERS if folder.is_dir()), _SAMPLE_FOLDERS[-1])
    names = sorted(path.stem for path in folder.glob(f"*.{language}"))
    if name not in names:
        raise FileNotFoundError(
            f"The embedded corpus has no part '{_SAMPLE}{name}' in language '{language}'; "
            + (
                f"its parts are: {', '.join(names)}."
                if names
                else "for another language give data=files and your own files."
            )
        )
    return folder / name
