"""The training corpus: normalized, filtered and tokenized once, then read from a memory-mapped Arrow file."""

import json
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import chain, compress, count, groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from datasets import Dataset, Features, List, Value
from datasets.arrow_writer import ArrowWriter
from jaxtyping import Int

from nmt.config.direction import Direction
from nmt.data.batch import Example
from nmt.data.cache import cached_folder, content_key
from nmt.data.corpus import Pairs, corpus_files, iter_pairs, read_pairs
from nmt.data.documents import NO_CONTEXT, ContextWindow, document_file, earlier_pairs, iter_documents, read_documents
from nmt.data.filters import Filters
from nmt.data.known_files import ReadLines, Sources
from nmt.errors import Mistake
from nmt.files import read_json
from nmt.text import TokenizerPair, changes, normalize

logger = logging.getLogger(__name__)

# Part of the cache key. Increment it when a code change gives different rows for the same files and settings.
_FORMAT = 7
_CHUNK = 10_000
_LOG_EVERY = 1_000_000
# Some pairs, such as names and numbers, have equal sides, but between two languages their share is far below this.
_MANY_EQUAL = 0.2
_FEATURES = {"source": List(Value("int32")), "target": List(Value("int32"))}


@dataclass(frozen=True)
class Report:
    """How many pairs were read, kept and dropped.

    parts: number of pairs kept from each corpus, in order; source_tokens, target_tokens: number of pieces in the kept
    pairs, including EOS; dropped: number of pairs dropped, by reason; changed: number of lines changed by
    normalization, by language and kind of change; same: number of kept pairs whose sides are the same text.
    """

    pairs: int
    kept: int
    parts: list[int]
    source_tokens: int
    target_tokens: int
    dropped: dict[str, int]
    changed: dict[str, int]
    same: int

    def __str__(self) -> str:
        tokens = f"{self.source_tokens:,} source and {self.target_tokens:,} target tokens"
        dropped, changed = (
            ", ".join(f"{count:,} {reason}" for reason, count in counts.items() if count) or "none"
            for counts in (self.dropped, self.changed)
        )
        text = f"{self.pairs:,} pairs, {self.kept:,} kept ({tokens}); dropped: {dropped}; lines normalized: {changed}"
        if self.same > _MANY_EQUAL * self.kept:
            text += f". In {self.same:,} pairs both sides are the same text: is one language given twice?"
        return text


class TrainingData(torch.utils.data.Dataset[Example]):
    """Tokenized sentence pairs by index, read from a memory-mapped file.

    lengths: source and target length of each pair, including EOS; parts: number of pairs from each corpus; documents:
    the document number of each pair, or None if document boundaries were not read. The pairs of each corpus are
    consecutive, in the order of the corpora, and so are those of each document.
    """

    def __init__(self, rows: Dataset, parts: Sequence[int]) -> None:
        self.rows, self.parts = rows, parts
        # Computed from the offsets in the mapped file, chunk by chunk: reading a column would copy it into memory.
        lengths = np.empty((len(rows), 2), dtype=np.int32)
        for column, side in enumerate(("source", "target")):
            start = 0
            for chunk in rows.data.column(side).chunks:
                offsets = chunk.offsets.to_numpy()
                np.subtract(offsets[1:], offsets[:-1], out=lengths[start : start + len(chunk), column])
                start += len(chunk)
        lengths += 1  # EOS
        self.lengths: Int[np.ndarray, "pairs 2"] = lengths
        self.documents: Int[np.ndarray, " pairs"] | None = None
        if "document" in rows.column_names:
            self.documents = rows.data.column("document").to_numpy()

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> Example:
        return self.__getitems__([index])[0]

    def __getitems__(self, indices: list[int]) -> list[Example]:
        """Reads all pairs of a batch at once. DataLoader calls this."""
        rows = self.rows[indices]
        return [Example(*parts) for parts in zip(indices, rows["source"], rows["target"], strict=True)]


def training_dataset(
    prefixes: Sequence[str],
    direction: Direction,
    tokenizers: TokenizerPair,
    filters: Filters,
    exclude: Sequence[str],
    cache_dir: Path,
    *,
    documents: bool = False,
) -> tuple[TrainingData, Report]:
    """The tokenized training pairs of all prefixes, and a report on them.

    `exclude` lists the held-out corpora (validation and test) for the overlap filter. With `documents`, PREFIX.doc is
    read where it exists. Pairs of a corpus that has one are dropped as duplicates or overlap only together with their
    whole document, or if one of their sides is in a held-out corpus without document boundaries. The result is cached
    under `cache_dir`, keyed by the contents of all files, the tokenizers and the filters.
    Raises whatever `iter_pairs` and `Sources` raise, and Mistake if no pair is left.
    """
    files = [path for prefix in (*prefixes, *exclude) for path in corpus_files(prefix, direction)]
    if documents:
        files += [path for prefix in (*prefixes, *exclude) if (path := document_file(prefix, direction))]
    models = [(tokenizer.model, tokenizer.tone_marks) for tokenizer in tokenizers]
    sources = Sources(files, cache_dir)
    digests = [sources.digests[path] for path in files]
    key = content_key([_FORMAT, len(prefixes), documents, digests, models, filters])
    fill = partial(
        _write,
        prefixes=prefixes,
        direction=direction,
        tokenizers=tokenizers,
        filters=filters,
        exclude=exclude,
        documents=documents,
        read=sources.lines,
    )
    folder = cached_folder(cache_dir / "datasets" / key, fill, "tokenizing this corpus")
    report = Report(**read_json(folder / "report.json"))
    return TrainingData(Dataset.from_file(str(folder / "pairs.arrow")), report.parts), report


def encode_pairs(
    pairs: Pairs,
    tokenizers: TokenizerPair,
    window: ContextWindow = NO_CONTEXT,
    documents: Sequence[int] | None = None,
) -> list[Example]:
    """All pairs of a validation or test corpus as ids. Index n is line n; nothing is dropped.

    `documents` gives the document number of each pair; with it, each example contains its earlier pairs in the window.
    """
    sides = tokenizers.source.encode_all(pairs.source), tokenizers.target.encode_all(pairs.target)
    ids = list(zip(*sides, strict=True))
    earlier = earlier_pairs(range(len(ids)) if documents is None else documents, ids, window)
    return [window(Example(line, *pair, before)) for line, (pair, before) in enumerate(zip(ids, earlier, strict=True))]


def _write(
    folder: Path,
    *,
    prefixes: Sequence[str],
    direction: Direction,
    tokenizers: TokenizerPair,
    filters: Filters,
    exclude: Sequence[str],
    documents: bool,
    read: ReadLines,
) -> None:
    """Writes the rows and the report. Reads the training corpora once, without holding their text in memory."""
    logger.info("Tokenizing the training pairs")
    changed, dropped, tokens = Counter[str](), Counter[str](), np.zeros(3, dtype=np.int64)
    parts, same = [0] * len(prefixes), 0
    text_filters = _text_filters(filters, exclude, direction, tokenizers, documents=documents, read=read)
    kept = _kept_by_text(prefixes, direction, tokenizers, text_filters, read, dropped=dropped, changed=changed)
    features = Features(_FEATURES | ({"document": Value("int32")} if documents else {}))
    with ArrowWriter(features=features, path=str(folder / "pairs.arrow")) as writer:
        while chunk := list(islice(kept, _CHUNK)):
            *texts, corpora, document_numbers = zip(*chunk, strict=True)
            source, target = (
                side.encode_all(list(lines))
                for lines, side in zip(texts, (tokenizers.source, tokenizers.target), strict=True)
            )
            lengths = np.array([[len(ids) + 1 for ids in side] for side in (source, target)]).T
            passes, dropped_by_length = filters.keep_lengths(lengths)
            dropped.update(dropped_by_length)
            for corpus in compress(corpora, passes):
                parts[corpus] += 1
            same += sum(one == other for one, other in compress(zip(*texts, strict=True), passes))
            tokens += [passes.sum(), *lengths[passes].sum(axis=0)]
            columns = {"source": source, "target": target} | ({"document": document_numbers} if documents else {})
            writer.write_batch({name: list(compress(column, passes)) for name, column in columns.items()})
        writer.finalize()
    kept_pairs, source_tokens, target_tokens = tokens.tolist()
    report = Report(
        pairs=kept_pairs + sum(dropped.values()),
        kept=kept_pairs,
        parts=parts,
        source_tokens=source_tokens,
        target_tokens=target_tokens,
        dropped=dict(+dropped),  # + removes the reasons that were counted zero times
        changed=dict(sorted((+changed).items())),
        same=same,
    )
    if not report.kept:
        raise Mistake(f"No training pair is left: {report}; check {', '.join(prefixes)} and the filters.")
    (folder / "report.json").write_text(json.dumps(asdict(report)), encoding="utf-8")


class _TextFilters(NamedTuple):
    """The text filters of pairs and of whole documents; see `Filters.text_filter`."""

    line: Callable[..., str]
    """For a pair of a corpus without boundaries, which must not contain any held-out line."""
    document: Callable[..., str] | None
    """For a whole document, which must not repeat a held-out document; None if boundaries are not read."""
    line_of_document: Callable[..., str]
    """For a pair of a document, which must not contain a line of a held-out corpus without boundaries."""


def _text_filters(
    filters: Filters,
    exclude: Sequence[str],
    direction: Direction,
    tokenizers: TokenizerPair,
    *,
    documents: bool,
    read: ReadLines,
) -> _TextFilters:
    lines, singles, texts = list[Pairs](), list[Pairs](), list[Pairs]()
    for prefix in exclude:
        sides = zip(tokenizers, read_pairs(prefix, direction, read), strict=True)
        pairs = Pairs(*([tokenizer.respelled(line) for line in side] for tokenizer, side in sides))
        numbers = read_documents(prefix, direction, read) if documents else None
        lines.append(pairs)
        if numbers is None:
            singles.append(pairs)
            continue
        joined = [
            ["\n".join(of_side) for of_side in zip(*(pair for _, pair in group), strict=True)]
            for _, group in groupby(zip(numbers, zip(*pairs, strict=True), strict=True), key=itemgetter(0))
        ]
        texts.append(Pairs(*(list(side) for side in zip(*joined, strict=True))))
    line, document, line_of_document = (
        filters.text_filter(held_out, direction) for held_out in (lines, texts, singles)
    )
    return _TextFilters(line, document if documents else None, line_of_document)


def _kept_by_text(
    prefixes: Sequence[str],
    direction: Direction,
    tokenizers: TokenizerPair,
    filters: _TextFilters,
    read: ReadLines,
    *,
    dropped: Counter[str],
    changed: Counter[str],
) -> Iterator[tuple[str, str, int, int]]:
    """Yields the normalized source and target, corpus number and document number of each pair that the filters keep.

    Updates two counters: `dropped` counts the pairs dropped, by reason, and `changed` the lines changed by
    normalization, by language and kind of change.
    """
    pairs_read = number = 0
    languages = (direction.source, direction.target)
    for corpus, prefix in enumerate(prefixes):
        boundaries = document_file(prefix, direction) if filters.document else None
        numbers = iter_documents(boundaries, read) if boundaries else count()
        lines_of_pairs = iter_pairs(prefix, direction, read)
        # Not strict, because count() never ends. Without boundaries, every pair is a group of its own.
        for _, group in groupby(zip(lines_of_pairs, numbers, strict=False), key=itemgetter(1)):
            pairs = []
            for lines, _ in group:
                pair = []
                for language, tokenizer, line in zip(languages, tokenizers, lines, strict=True):
                    kinds = changes(line)
                    normalized = normalize(line) if kinds else line  # most lines of most corpora stay as they are
                    pair.append(tokenizer.respelled(normalized))
                    changed.update(f"{language} {kind}" for kind in kinds)
                    changed[f"{language} tone marks"] += pair[-1] != normalized
                pairs_read += 1
                if pairs_read % _LOG_EVERY == 0:
                    logger.info("%s sentence pairs read", f"{pairs_read:,}")
                pairs.append(tuple(pair))
            number += 1
            why_whole = ""
            if boundaries and filters.document:
                why_whole = filters.document(*("\n".join(side) for side in zip(*pairs, strict=True)))
            for source, target in pairs:
                # Lines are checked even if the whole document is dropped: the filters remember every pair they see.
                of_line = filters.line_of_document(source, target, True) if boundaries else filters.line(source, target)
                if why := why_whole or of_line:
                    dropped[why] += 1
                else:
                    yield source, target, corpus, number
        for _ in chain(lines_of_pairs, numbers if boundaries else ()):
            pass  # to the end, where `read` checks the files
