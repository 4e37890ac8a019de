"""The training corpus: normalised, filtered and tokenised once, kept as a memory-mapped Arrow file, and reported on."""

import json
import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import compress, islice
from pathlib import Path

import numpy as np
import torch
from datasets import Dataset, Features, List, Value
from datasets.arrow_writer import ArrowWriter
from jaxtyping import Int

from nmt.config.direction import Direction
from nmt.data.batch import Example
from nmt.data.cache import cached_folder, content_key, file_digest
from nmt.data.corpus import Pairs, file_pair, iter_parallel, read_pairs
from nmt.data.filters import Filters
from nmt.text import TokenizerPair, changes, normalize

logger = logging.getLogger(__name__)

# Part of the cache key: raise it when the same files shall give other rows.
_FORMAT = 3
_CHUNK = 10_000
_TOLD = 1_000_000
# A share of pairs with equal sides, such as names and numbers, that no corpus of two languages comes near.
_MANY_SAME = 0.2
_FEATURES = Features({"source": List(Value("int32")), "target": List(Value("int32"))})


@dataclass(frozen=True)
class Report:
    """What became of a training corpus.

    pairs: pairs read; kept: pairs left; parts: pairs left of each corpus, in their order; source_tokens,
    target_tokens: pieces of these, EOS counted; dropped: pairs left out, by reason; changed: lines changed by
    normalisation, by language and kind of change; same: kept pairs whose sides are the same text.
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
        dropped, changed = _listed(self.dropped), _listed(self.changed)
        told = f"{self.pairs:,} pairs, {self.kept:,} kept ({tokens}); dropped: {dropped}; lines normalised: {changed}"
        if self.same > _MANY_SAME * self.kept:
            told += f". In {self.same:,} pairs both sides are the same text: is one language given twice?"
        return told


class TrainingData(torch.utils.data.Dataset[Example]):
    """Tokenised sentence pairs by index, read from a memory-mapped file.

    lengths: source and target length of each pair, EOS counted; parts: how many pairs each corpus has, one after the
    other.
    """

    def __init__(self, rows: Dataset, parts: Sequence[int]) -> None:
        self.rows, self.parts = rows, parts
        self.lengths: Int[np.ndarray, "pairs 2"] = _lengths(rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> Example:
        return self.__getitems__([index])[0]

    def __getitems__(self, indices: list[int]) -> list[Example]:
        """The pairs of a batch in one read; this is what a DataLoader calls."""
        rows = self.rows[indices]
        return list(zip(indices, rows["source"], rows["target"], strict=True))


def training_dataset(
    prefixes: Sequence[str],
    direction: Direction,
    tokenizers: TokenizerPair,
    filters: Filters,
    exclude: Sequence[str],
    cache_dir: Path,
) -> tuple[TrainingData, Report]:
    """The tokenised training pairs of all prefixes, and the report on them.

    `exclude` names the held-out corpora (validation and test) for the overlap filter. The result is kept under
    `cache_dir` by the content of all files, the tokenizers and the filters, and is reopened when all are the same.
    Raises as `iter_parallel` does, and ValueError when no pair is left.
    """
    digests = [[file_digest(path) for path in file_pair(prefix, direction)] for prefix in (*prefixes, *exclude)]
    models = [tokenizers.source.model, tokenizers.target.model]
    key = content_key([_FORMAT, len(prefixes), digests, models, filters])
    fill = partial(_write, prefixes, direction, tokenizers, filters, exclude)
    folder = cached_folder(cache_dir / "datasets" / key, fill)
    report = Report(**json.loads((folder / "report.json").read_text(encoding="utf-8")))
    return TrainingData(Dataset.from_file(str(folder / "pairs.arrow")), report.parts), report


def encode_pairs(pairs: Pairs, tokenizers: TokenizerPair) -> list[Example]:
    """All pairs of a validation or test corpus as ids, index n for line n; nothing is dropped."""
    source, target = tokenizers.source.encode_all(pairs.source), tokenizers.target.encode_all(pairs.target)
    return list(zip(range(len(source)), source, target, strict=True))


def _write(
    prefixes: Sequence[str],
    direction: Direction,
    tokenizers: TokenizerPair,
    filters: Filters,
    exclude: Sequence[str],
    folder: Path,
) -> None:
    """Goes through the corpora once, without holding their text."""
    logger.info("Tokenising the training pairs")
    changed, dropped, tokens = Counter[str](), Counter[str](), np.zeros(3, dtype=np.int64)
    parts, corpus, same = [0] * len(prefixes), _Corpus(), 0
    held_out = _joined(read_pairs(prefix, direction) for prefix in exclude)
    raw = _in_order(prefixes, direction, corpus)
    kept = filters.keep_texts(_normalized(raw, direction, changed), held_out, dropped, direction)
    with ArrowWriter(features=_FEATURES, path=str(folder / "pairs.arrow")) as writer:
        # A pair is of the corpus that is being read when it comes: nothing reads ahead.
        while chunk := [(*pair, corpus.number) for pair in islice(kept, _CHUNK)]:
            *texts, origins = zip(*chunk, strict=True)
            source, target = (
                side.encode_all(list(lines))
                for lines, side in zip(texts, (tokenizers.source, tokenizers.target), strict=True)
            )
            lengths = np.array([[len(ids) + 1 for ids in side] for side in (source, target)]).T
            passes, dropped_here = filters.keep_lengths(lengths)
            dropped.update(dropped_here)
            for origin in compress(origins, passes):
                parts[origin] += 1
            same += sum(one == other for one, other in compress(zip(*texts, strict=True), passes))
            tokens += [passes.sum(), *lengths[passes].sum(axis=0)]
            writer.write_batch({"source": list(compress(source, passes)), "target": list(compress(target, passes))})
        writer.finalize()
    number, source_tokens, target_tokens = tokens.tolist()
    pairs = number + sum(dropped.values())
    left_out, mended = dict(+dropped), dict(sorted(changed.items()))
    report = Report(pairs, number, parts, source_tokens, target_tokens, left_out, mended, same)
    if not report.kept:
        raise ValueError(f"No training pair is left: {report}; check {', '.join(prefixes)} and the filters.")
    (folder / "report.json").write_text(json.dumps(asdict(report)), encoding="utf-8")


class _Corpus:
    """Which of the corpora is being read."""

    number = 0


def _in_order(prefixes: Sequence[str], direction: Direction, corpus: _Corpus) -> Iterator[tuple[str, str]]:
    for corpus.number, prefix in enumerate(prefixes):
        yield from iter_parallel(*file_pair(prefix, direction))


def _normalized(
    raw: Iterable[tuple[str, str]], direction: Direction, changed: Counter[str]
) -> Iterator[tuple[str, str]]:
    """The pairs normalised; `changed` counts the lines that this changes, by language and kind."""
    for number, (source, target) in enumerate(raw, start=1):
        changed.update(f"{direction.source} {kind}" for kind in changes(source))
        changed.update(f"{direction.target} {kind}" for kind in changes(target))
        if number % _TOLD == 0:
            logger.info("%s sentence pairs read", f"{number:,}")
        yield normalize(source), normalize(target)


def _joined(corpora: Iterable[Pairs]) -> Pairs:
    joined = Pairs([], [])
    for source, target in corpora:
        joined.source.extend(source)
        joined.target.extend(target)
    return joined


def _listed(counts: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {reason}" for reason, count in counts.items() if count) or "none"


def _lengths(rows: Dataset) -> np.ndarray:
    """From the offsets in the mapped file, chunk by chunk: Arrow would keep the memory of a copy of its own."""
    lengths = np.empty((len(rows), 2), dtype=np.int32)
    for column, side in enumerate(("source", "target")):
        start = 0
        for chunk in rows.data.column(side).chunks:
            offsets = chunk.offsets.to_numpy()
            np.subtract(offsets[1:], offsets[:-1], out=lengths[start : start + len(chunk), column])
            start += len(chunk)
    lengths += 1  # EOS
    return lengths
