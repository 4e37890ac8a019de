"""Documents: PREFIX.doc names the document of each line of a corpus, and sentences are read with those before them."""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Int

from nmt.config.direction import Direction
from nmt.data.batch import Example, TokenizedPair
from nmt.data.corpus import corpus_files, iter_lines
from nmt.text import EOS


class ContextWindow(NamedTuple):
    """How much of a document a model reads before each sentence."""

    sentences: int = 0
    """The largest number of earlier sentences; 0: none."""
    joined: bool = False
    """Whether the earlier source sentences become part of the source, each with its EOS; the model needs no context."""
    translations: bool = False
    """Whether earlier translations are read too, so that a document is translated sentence by sentence."""

    def __call__(self, example: Example) -> Example:
        """The example as the model reads it."""
        if not self.joined:
            return example
        source = [piece for earlier, _ in example.earlier for piece in (*earlier, EOS)]
        return Example(example.number, [*source, *example.source], example.target)


NO_CONTEXT = ContextWindow()


def document_file(prefix: str, direction: Direction) -> Path | None:
    """The path of a corpus's PREFIX.doc; None without boundaries. Raises FileNotFoundError without the corpus."""
    path = corpus_files(prefix, direction)[0].with_suffix(".doc")
    return path if path.is_file() else None


def iter_documents(path: Path) -> Iterator[int]:
    """The number of the document of each line of PREFIX.doc, from 0; `check_documents` refuses a damaged file."""
    number, last = -1, ""
    for name in iter_lines(path):
        number += name != last
        last = name
        yield number


def read_documents(prefix: str, direction: Direction) -> list[int] | None:
    """All of `iter_documents`, or None without PREFIX.doc."""
    path = document_file(prefix, direction)
    return None if path is None else list(iter_documents(path))


def check_documents(prefix: str, direction: Direction) -> bool:
    """Whether a corpus has document boundaries. Raises the errors of `documents_of_file`."""
    path = document_file(prefix, direction)
    if path is not None:
        documents_of_file(path, sum(1 for _ in iter_lines(corpus_files(prefix, direction)[0])))
    return path is not None


def documents_of_file(path: Path, lines: int) -> list[int]:
    """The number of the document of each of so many lines, which a file names.

    Raises ValueError if the file has another number of lines, a line without a name, or a document whose lines are not
    consecutive.
    """
    first: dict[str, int] = {}
    numbers: list[int] = []
    last = ""
    for count, name in enumerate(iter_lines(path), start=1):
        if not name.strip():
            raise ValueError(f"{path}, line {count} is empty; it must name the document of line {count} of the text.")
        if name != last and name in first:
            raise ValueError(
                f"{path}, line {count}: document '{name}' appears again; its first lines start at line {first[name]}, "
                "and the lines of a document must be consecutive."
            )
        first.setdefault(name, count)
        numbers.append(len(first) - 1)
        last = name
    if len(numbers) != lines:
        raise ValueError(
            f"{path} has {len(numbers)} lines but the text has {lines}; line n must name the document of line n of the "
            "text."
        )
    return numbers


def check_named(documents: Sequence[Hashable], lines: int) -> None:
    """Raises ValueError unless `documents` is a list of a name for each line, with equal names next to each other."""
    if isinstance(documents, str):
        raise ValueError(f"documents must be a list with the name of each line's document, not {documents!r}.")
    if len(documents) != lines:
        raise ValueError(f"{lines} lines but {len(documents)} documents: name the document of each line.")
    seen: set[Hashable] = set()
    for line, name in enumerate(documents):
        if (line == 0 or name != documents[line - 1]) and name in seen:
            raise ValueError(f"documents[{line}] is {name!r} again; the lines of a document must be consecutive.")
        seen.add(name)


def earlier_pairs(
    documents: Sequence[Hashable],
    pairs: Sequence[TokenizedPair],
    window: ContextWindow,
    lines: Iterable[int] | None = None,
) -> list[list[TokenizedPair]]:
    """The pairs before each line in its document, as many as the window has, in their order; of all lines, or some.

    `documents` names the document of each line; its lines are consecutive. Empty sources are skipped.
    """
    found = []
    for line in range(len(pairs)) if lines is None else lines:
        recent: list[TokenizedPair] = []
        back = line - 1
        while len(recent) < window.sentences and back >= 0 and documents[back] == documents[line]:
            if pairs[back][0]:
                recent.insert(0, pairs[back])
            back -= 1
        found.append(recent)
    return found


def lengths_in_context(
    lengths: Int[np.ndarray, "pairs 2"], documents: Int[np.ndarray, " pairs"], window: ContextWindow
) -> Int[np.ndarray, "pairs 2"]:
    """The lengths of both sides with those of the earlier sentences that are read; all lengths include EOS.

    Pairs of a document are consecutive. The target side grows only if the window has translations.
    """
    total = lengths.copy()
    for back in range(1, window.sentences + 1):
        same = documents[back:] == documents[:-back]
        grown = np.where(same[:, None], lengths[:-back], 0)
        total[back:, 0] += grown[:, 0]
        if window.translations:
            total[back:, 1] += grown[:, 1]
    return total
