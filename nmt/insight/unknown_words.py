"""The words of a text that a run never saw in training."""

import logging
import re
from functools import lru_cache
from pathlib import Path

from nmt.errors import CheckFailed, Mistake
from nmt.runs.directory import RunDirectory
from nmt.runs.load import LoadedRun
from nmt.text import normalize

logger = logging.getLogger(__name__)

_WORD = re.compile(r"[^\W\d_]+(?:['\u2019-][^\W\d_]+)*")


def folded_words(text: str) -> list[str]:
    """The words of a normalized text, case-folded: letters, with apostrophes and hyphens between them."""
    return _WORD.findall(text.casefold())


def unknown_words(run: LoadedRun, text: str) -> list[str]:
    """The words of a source text that are neither in the training text nor in the run's dictionary, each once.

    The list is empty if the run does not store the words of its training text.
    """
    known = known_words(run.directory)
    if known is None:
        return []
    # Case folding may divide a word: that of a capital I with a dot ends in a mark, which is no letter.
    words = _WORD.findall(run.dictionary.removed(run.tokenizers.source.respelled(normalize(text))))
    return list(dict.fromkeys(word for word in words if not known.issuperset(folded_words(word))))


def known_words(directory: RunDirectory) -> frozenset[str] | None:
    """The words of a run's training sources, case-folded; None if they are not stored or their file cannot be read."""
    try:
        return _read(directory.path, directory.words.stat().st_mtime_ns)
    except FileNotFoundError:
        return None
    except (Mistake, CheckFailed, OSError) as error:  # translation works without the list
        _warn(f"Unknown words will not be named, because {error}")
        return None


@lru_cache(maxsize=4)
def _read(path: Path, changed: int) -> frozenset[str] | None:
    return RunDirectory(path).source_words()


@lru_cache(maxsize=64)
def _warn(message: str) -> None:
    """Warns once: a server asks for the words of the same run with each translation."""
    logger.warning(message)
