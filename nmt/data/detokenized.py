"""Plain copies of corpora that were published as tokens."""

import logging
from functools import partial
from importlib.metadata import version
from pathlib import Path

from nmt.config.direction import Direction
from nmt.data.cache import cached_folder, content_key, file_digest
from nmt.data.corpus import file_pair, iter_lines
from nmt.text import detokenizer

logger = logging.getLogger(__name__)

# Part of the cache key: raise it when the same files shall give other text.
_FORMAT = 2
_STEM = "corpus"


def detokenized(prefix: str, direction: Direction, cache_dir: Path) -> str:
    """The prefix of a copy in plain text, line by line, kept under `cache_dir` by the content of the files.

    Raises as `iter_lines`.
    """
    # Not of the name: equal files under two names have one copy.
    key = content_key([_FORMAT, version("sacremoses"), direction, *map(file_digest, file_pair(prefix, direction))])
    folder = cached_folder(cache_dir / "detokenized" / key, partial(_write, prefix, direction))
    return str(folder / _STEM)


def _write(prefix: str, direction: Direction, folder: Path) -> None:
    for path in file_pair(prefix, direction):
        plain, lines, changed = detokenizer(path.suffix[1:]), 0, 0
        with (folder / f"{_STEM}{path.suffix}").open("w", encoding="utf-8", newline="\n") as copy:
            for line in iter_lines(path):
                text = plain(line)
                lines, changed = lines + 1, changed + (text != line)
                copy.write(f"{text}\n")
        logger.info("A copy of %s in plain text: %s of %s lines differ", path, f"{changed:,}", f"{lines:,}")
