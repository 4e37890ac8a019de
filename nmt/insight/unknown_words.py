"""The words of a text that a run never saw in training."""

import re
from functools import cache

from nmt.config.direction import Direction
from nmt.data.corpus import corpus_files
from nmt.runs.load import LoadedRun
from nmt.text import normalize

_WORD = re.compile(r"[^\W\d_]+(?:['\u2019-][^\W\d_]+)*")


def unknown_words(run: LoadedRun, text: str) -> list[str]:
    """The words of a source text that are not in the training text, each once.

    Only the embedded corpus is always available; for runs of other corpora, the list is empty.
    """
    known = known_words(run)
    if known is None:
        return []
    return list(dict.fromkeys(word for word in _WORD.findall(normalize(text)) if word.casefold() not in known))


def known_words(run: LoadedRun) -> frozenset[str] | None:
    """The words of the run's training sources, case-folded; None if its corpus is not the embedded one."""
    return _words(tuple(run.settings.data.train), run.direction) if run.settings.data.embedded else None


@cache
def _words(prefixes: tuple[str, ...], direction: Direction) -> frozenset[str]:
    sources = (corpus_files(prefix, direction)[0].read_text(encoding="utf-8") for prefix in prefixes)
    return frozenset(word for text in sources for word in _WORD.findall(normalize(text).casefold()))
