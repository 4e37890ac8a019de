"""Plain-text copies of corpora that were published in tokenized form."""

import logging
import shutil
from functools import partial
from importlib.metadata import version
from pathlib import Path

from nmt.config.direction import Direction
from nmt.data.cache import cached_folder, content_key, file_digest
from nmt.data.corpus import corpus_files
from nmt.data.documents import document_file
from nmt.data.known_files import Sources
from nmt.text import detokenizer
from nmt.text.compressed import uncompressed

logger = logging.getLogger(__name__)

# Part of the cache key. Increment it when a code change gives different text for the same files.
_FORMAT = 2
_STEM = "corpus"


def detokenized(prefix: str, direction: Direction, cache_dir: Path) -> str:
    """Detokenizes a corpus line by line and returns the prefix of the plain-text copy.

    The copy is cached under `cache_dir`, keyed by the contents of the files. PREFIX.doc is copied unchanged.
    Raises whatever `corpus_files` and `Sources` raise.
    """
    boundaries = document_file(prefix, direction)
    files = [path for path in (*corpus_files(prefix, direction), boundaries) if path]
    sources = Sources(files, cache_dir)
    key = content_key([_FORMAT, version("sacremoses"), direction, *(sources.digests[path] for path in files)])
    folder = cached_folder(
        cache_dir / "detokenized" / key, partial(_write, prefix, direction, sources), f"detokenizing {prefix}"
    )
    return str(folder / _STEM)


def _write(prefix: str, direction: Direction, sources: Sources, folder: Path) -> None:
    for path in corpus_files(prefix, direction):
        ending = uncompressed(path).suffix
        plain, lines, changed = detokenizer(ending[1:]), 0, 0
        with (folder / f"{_STEM}{ending}").open("w", encoding="utf-8", newline="\n") as copy:
            for line in sources.lines(path):
                text = plain(line)
                lines, changed = lines + 1, changed + (text != line)
                copy.write(f"{text}\n")
        logger.info("Detokenized %s: %s of %s lines changed", path, f"{changed:,}", f"{lines:,}")
    if boundaries := document_file(prefix, direction):
        copied = Path(shutil.copyfile(boundaries, folder / f"{_STEM}.doc"))
        sources.check(boundaries, file_digest(copied))
