"""Corpora in one file: each line of a .tsv is a source, a tab, and its translation."""

from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from nmt.config.direction import Direction
from nmt.data.cache import cached_folder, content_key
from nmt.data.known_files import ReadLines, Sources
from nmt.errors import Mistake
from nmt.text.compressed import uncompressed
from nmt.text.lines import iter_lines

# Part of the cache key. Increment it when a code change gives different text for the same file.
_FORMAT = 1
_STEM = "corpus"


def is_table(name: str) -> bool:
    """Whether the name of a corpus is that of one file with both sides, such as pairs.tsv or pairs.tsv.gz."""
    return uncompressed(Path(name)).suffix == ".tsv"


def iter_table(path: Path, read: ReadLines = iter_lines) -> Iterator[tuple[str, str]]:
    """Yields the pairs of a table. Raises whatever `read` raises, and Mistake for a line without exactly one tab."""
    for number, line in enumerate(read(path), start=1):
        source, *targets = line.split("\t")
        if len(targets) != 1:
            has = f"has {len(targets) + 1} columns" if targets else "has no tab"
            raise Mistake(
                f"{path}, line {number} {has}; each line must be a source, a tab, and its translation. If other "
                "columns hold the pair, choose them, as with: cut -f1,2"
            )
        yield source, targets[0]


def split_table(path: Path, direction: Direction, cache_dir: Path) -> str:
    """Writes the two sides of a table as two files, and returns their prefix.

    They are cached under `cache_dir`, keyed by the content of the table. Raises whatever `iter_table` and `Sources`
    raise.
    """
    sources = Sources([path], cache_dir)
    key = content_key([_FORMAT, direction, sources.digests[path]])
    fill = partial(_write, path, direction, sources)
    return str(cached_folder(cache_dir / "tables" / key, fill, f"splitting {path}") / _STEM)


def _write(path: Path, direction: Direction, sources: Sources, folder: Path) -> None:
    with ExitStack() as stack:
        files = [
            stack.enter_context((folder / f"{_STEM}.{language}").open("w", encoding="utf-8", newline="\n"))
            for language in (direction.source, direction.target)
        ]
        for pair in iter_table(path, sources.lines):
            for file, line in zip(files, pair, strict=True):
                file.write(f"{line}\n")
