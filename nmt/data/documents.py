"""Documents: PREFIX.doc names each line's document, and models can read a sentence with those that precede it."""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from nmt.config.direction import Direction
from nmt.data.corpus import corpus_files
from nmt.data.example import Example, TokenizedPair
from nmt.data.known_files import ReadLines, count_lines
from nmt.data.table_corpora import is_table
from nmt.errors import Mistake
from nmt.text import EOS
from nmt.text.compressed import uncompressed
from nmt.text.lines import iter_lines


class ContextWindow(NamedTuple):
    """How much of a document a model reads before each sentence."""

    sentences: int = 0
    """Maximum number of earlier sentences; 0 for none."""
    joined: bool = False
    """Whether the earlier source sentences are prepended to the source, each with its EOS; any model can read this."""
    translations: bool = False
    """Whether the model also reads the earlier translations, so that a document is translated sentence by sentence."""

    def __call__(self, example: Example) -> Example:
        """The example as the model reads it."""
        if not self.joined:
            return example
        source = [piece for earlier, _ in example.earlier for piece in (*earlier, EOS)]
        return Example(example.number, [*source, *example.source], example.target)

    def sides_read(self, pair: TokenizedPair) -> Sequence[Sequence[int]]:
        """The sides of an earlier pair that the model reads."""
        return pair if self.translations else pair[:1]


NO_CONTEXT = ContextWindow()


def document_file(prefix: str, direction: Direction) -> Path | None:
    """The path of a corpus's PREFIX.doc, or None if it has none; a table never has one.

    Raises Mistake for a missing corpus.
    """
    if is_table(prefix):
        return None
    path = uncompressed(corpus_files(prefix, direction)[0]).with_suffix(".doc")
    return path if path.is_file() else None


def iter_documents(path: Path, read: ReadLines = iter_lines) -> Iterator[int]:
    """Yields the document number of each line of PREFIX.doc, from 0. The file is not checked; see `check_documents`."""
    number, last = -1, ""
    for name in read(path):
        number += name != last
        last = name
        yield number


def read_documents(prefix: str, direction: Direction, read: ReadLines = iter_lines) -> list[int] | None:
    """The document number of each line of a corpus, from 0, or None if it has no PREFIX.doc."""
    path = document_file(prefix, direction)
    return None if path is None else list(iter_documents(path, read))


def check_documents(prefix: str, direction: Direction, cache_dir: Path | None = None) -> bool:
    """Whether a corpus has document boundaries. Raises whatever `documents_of_file` raises.

    With `cache_dir`, the text is read only if it has changed since it was last read.
    """
    path = document_file(prefix, direction)
    if path is not None:
        documents_of_file(path, count_lines(corpus_files(prefix, direction)[0], cache_dir))
    return path is not None


def documents_of_file(path: Path, lines: int) -> list[int]:
    """The document number, from 0, of each of the `lines` lines of a text; the file at `path` names their documents.

    Raises Mistake if the file has a different number of lines, a line without a name, or a document whose lines are
    not consecutive.
    """
    first: dict[str, int] = {}
    numbers: list[int] = []
    last = ""
    for count, name in enumerate(iter_lines(path), start=1):
        if not name.strip():
            raise Mistake(
                f"{path}, line {count} is empty; it must name the document that line {count} of the text belongs to."
            )
        if name != last and name in first:
            raise Mistake(
                f"{path}, line {count}: document '{name}' appears again; its first lines start at line {first[name]}, "
                "and the lines of a document must be consecutive."
            )
        first.setdefault(name, count)
        numbers.append(len(first) - 1)
        last = name
    if len(numbers) != lines:
        raise Mistake(
            f"{path} has {len(numbers)} lines but the text has {lines}; line n must name the document that line n of "
            "the text belongs to."
        )
    return numbers


def check_named(documents: Sequence[Hashable], lines: int) -> None:
    """Raises Mistake unless `documents` names each line's document and each document's lines are consecutive."""
    if isinstance(documents, str):
        raise Mistake(f"documents must be a list that names each line's document, not {documents!r}.")
    if len(documents) != lines:
        raise Mistake(
            f"The number of document names ({len(documents)}) differs from the number of lines ({lines}): give one "
            "document name for each line."
        )
    seen: set[Hashable] = set()
    for line, name in enumerate(documents):
        if (line == 0 or name != documents[line - 1]) and name in seen:
            raise Mistake(f"documents[{line}] is {name!r} again; the lines of a document must be consecutive.")
        seen.add(name)


def earlier_pairs(
    documents: Sequence[Hashable],
    pairs: Sequence[TokenizedPair],
    window: ContextWindow,
    lines: Iterable[int] | None = None,
) -> list[list[TokenizedPair]]:
    """For each of the `lines` (None: all), the earlier pairs of its document that are in its window, in document order.

    `documents` names the document of each line, and the lines of a document must be consecutive. Pairs with an empty
    source are skipped.
    """
    earlier_of_lines = []
    for line in range(len(pairs)) if lines is None else lines:
        earlier: list[TokenizedPair] = []
        back = line - 1
        while len(earlier) < window.sentences and back >= 0 and documents[back] == documents[line]:
            if pairs[back][0]:
                earlier.insert(0, pairs[back])
            back -= 1
        earlier_of_lines.append(earlier)
    return earlier_of_lines
