"""The training corpus: normalized, filtered and tokenized once, then read from a memory-mapped Arrow file."""

import json
import logging
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from functools import partial
from itertools import chain, groupby, repeat
from operator import itemgetter
from pathlib import Path

import numpy as np
import pyarrow as pa
import torch
from datasets import Dataset, Features, List, Value
from datasets.arrow_writer import ArrowWriter
from jaxtyping import Int

from nmt.config.direction import Direction
from nmt.data.cache import cached_folder, content_key
from nmt.data.chunks import REASONS, Chunk, Merge, TextFilters, Tokenizing
from nmt.data.corpus import Pairs, corpus_files, iter_pairs, read_pairs
from nmt.data.documents import NO_CONTEXT, ContextWindow, document_file, earlier_pairs, iter_documents, read_documents
from nmt.data.example import Example
from nmt.data.filters import Filters
from nmt.data.known_files import ReadLines, Sources
from nmt.data.tokenizing_processes import number_of_processes, tokenized_chunks
from nmt.errors import Mistake
from nmt.files import locked, read_json
from nmt.text import TokenizerPair

logger = logging.getLogger(__name__)

# Part of the cache key. Increment it when a code change gives different rows for the same files and settings.
_FORMAT = 7
_CHUNK = 10_000
_ABANDONED = 7 * 24 * 3600
"""Seconds after which chunks of an interrupted command are deleted: jobs on a cluster may wait for days."""
_LOG_EVERY = 1_000_000
# Some pairs, such as names and numbers, have equal sides, but between two languages their share is far below this.
_MANY_EQUAL = 0.2
_FEATURES = {"source": List(Value("int32")), "target": List(Value("int32"))}


@dataclass(frozen=True)
class CorpusReport:
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
) -> tuple[TrainingData, CorpusReport]:
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
    # The languages decide which filters apply, so the same files in another direction are another dataset.
    bounded = [documents and document_file(prefix, direction) is not None for prefix in (*prefixes, *exclude)]
    key = content_key([_FORMAT, direction, len(prefixes), documents, bounded, digests, models, filters])
    # The finished chunks of an interrupted command; only the process that fills the folder writes them.
    parts = cache_dir / "datasets" / f".{key}.chunks"
    fill = partial(
        _write,
        prefixes=prefixes,
        direction=direction,
        tokenizers=tokenizers,
        filters=filters,
        exclude=exclude,
        documents=documents,
        read=sources.lines,
        parts=parts,
    )
    try:
        folder = cached_folder(cache_dir / "datasets" / key, fill, "tokenizing this corpus")
    except Mistake:
        shutil.rmtree(parts, ignore_errors=True)  # the same command would fail again
        raise
    shutil.rmtree(parts, ignore_errors=True)
    report = CorpusReport(**read_json(folder / "report.json"))
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
    parts: Path,
) -> None:
    """Writes the rows and the report. Reads the training corpora once, without holding their text in memory."""
    _remove_abandoned_chunks(parts)
    text_filters = _text_filters(filters, exclude, direction, tokenizers, documents=documents, read=read)
    tokenizing = Tokenizing(direction, tokenizers, filters, text_filters)
    chunks = _chunks(prefixes, direction, read, documents=documents)
    processes = number_of_processes()
    logger.info("Tokenizing the training pairs")
    features = Features(_FEATURES | ({"document": Value("int32")} if documents else {}))
    merge, pairs_read = Merge(len(prefixes)), 0
    with (
        ArrowWriter(features=features, path=str(folder / "pairs.arrow")) as writer,
        closing(tokenized_chunks(chunks, tokenizing, parts, processes)) as tokenized_in_order,
    ):
        for chunk, tokenized in tokenized_in_order:
            sides, numbers = merge.kept(chunk, tokenized)
            columns = {name: _lists(*side) for name, side in zip(("source", "target"), sides, strict=True)}
            writer.write_table(pa.table(columns | ({"document": pa.array(numbers)} if documents else {})))
            before, pairs_read = pairs_read, pairs_read + len(tokenized.reasons)
            if before // _LOG_EVERY < pairs_read // _LOG_EVERY:
                logger.info("%s sentence pairs tokenized", f"{pairs_read:,}")
        writer.finalize()
    source_tokens, target_tokens = merge.tokens.tolist()
    dropped = dict(zip(REASONS, merge.dropped.tolist(), strict=True))
    report = CorpusReport(
        pairs=sum(dropped.values()),
        kept=dropped.pop(""),
        parts=merge.parts,
        source_tokens=source_tokens,
        target_tokens=target_tokens,
        dropped={reason: count for reason, count in dropped.items() if count},
        changed=dict(sorted((+merge.changed).items())),
        same=merge.same,
    )
    if not report.kept:
        raise Mistake(f"No training pair is left: {report}; check {', '.join(prefixes)} and the filters.")
    (folder / "report.json").write_text(json.dumps(asdict(report)), encoding="utf-8")


def _remove_abandoned_chunks(ours: Path) -> None:
    """Deletes the chunks of other commands that were interrupted more than a week ago and not continued since."""
    for parts in {*ours.parent.glob(".*.chunks")} - {ours}:
        lock = parts.with_suffix(".lock")  # the one of `cached_folder`
        with suppress(Mistake, OSError):  # somebody fills it, or has just deleted it
            if time.time() - parts.stat().st_mtime > _ABANDONED:
                with locked(lock) as holds_lock:
                    if holds_lock:
                        shutil.rmtree(parts, ignore_errors=True)
                    lock.rmdir()


def _lists(lengths: Int[np.ndarray, " rows"], ids: Int[np.ndarray, " pieces"]) -> pa.ListArray:
    offsets = np.zeros(len(lengths) + 1, dtype=np.int32)
    np.cumsum(lengths, out=offsets[1:])
    return pa.ListArray.from_arrays(offsets, pa.array(ids, pa.int32()))


def _text_filters(
    filters: Filters,
    exclude: Sequence[str],
    direction: Direction,
    tokenizers: TokenizerPair,
    *,
    documents: bool,
    read: ReadLines,
) -> TextFilters:
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
    return TextFilters(
        line=filters.text_filter(lines, direction),
        document=filters.text_filter(texts, direction),
        line_of_document=filters.text_filter(singles, direction),
    )


def _chunks(prefixes: Sequence[str], direction: Direction, read: ReadLines, *, documents: bool) -> Iterator[Chunk]:
    """Yields the pairs of all corpora in chunks of about 10,000 pairs, which contain whole documents."""
    for corpus, prefix in enumerate(prefixes):
        boundaries = document_file(prefix, direction) if documents else None
        numbers = iter_documents(boundaries, read) if boundaries else repeat(0)
        pairs, sizes = list[tuple[str, str]](), list[int]()
        last = -1
        lines_of_pairs = iter_pairs(prefix, direction, read)
        # Not strict, because repeat() never ends.
        for pair, number in zip(lines_of_pairs, numbers, strict=False):
            if len(pairs) >= _CHUNK and (number != last or not boundaries):
                yield _chunk(corpus, pairs, sizes if boundaries else None)
                pairs, sizes, last = [], [], -1
            if number != last:
                sizes.append(0)
            pairs.append(pair)
            sizes[-1] += 1
            last = number
        for _ in chain(lines_of_pairs, numbers if boundaries else ()):
            pass  # to the end, where `read` checks the files
        if pairs:
            yield _chunk(corpus, pairs, sizes if boundaries else None)


def _chunk(corpus: int, pairs: Sequence[tuple[str, str]], sizes: Sequence[int] | None) -> Chunk:
    sources, targets = ("\n".join(side) for side in zip(*pairs, strict=True))
    return Chunk(corpus, sources, targets, None if sizes is None else tuple(sizes))
