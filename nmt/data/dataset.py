"""The training corpus: normalized, filtered and tokenized once, then read from a memory-mapped Arrow file."""

import json
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
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
from nmt.data.corpus import Pairs, corpus_files, iter_pairs, read_pairs
from nmt.data.filters import Filters
from nmt.text import TokenizerPair, changes, normalize

logger = logging.getLogger(__name__)

# Part of the cache key. Raise it when the same files and settings give different rows.
_FORMAT = 3
_CHUNK = 10_000
_LOG_EVERY = 1_000_000
# Some pairs have equal sides, such as names and numbers. A corpus of two languages stays far below this share.
_MANY_EQUAL = 0.2
_FEATURES = Features({"source": List(Value("int32")), "target": List(Value("int32"))})


@dataclass(frozen=True)
class Report:
    """How many pairs were read, kept and dropped.

    parts: pairs kept of each corpus, in order; source_tokens, target_tokens: pieces of the kept pairs, including EOS;
    dropped: pairs dropped, by reason; changed: lines changed by normalization, by language and kind of change; same:
    kept pairs whose sides are the same text.
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

    lengths: source and target length of each pair, including EOS; parts: number of pairs of each corpus. The pairs of
    the first corpus come first.
    """

    def __init__(self, rows: Dataset, parts: Sequence[int]) -> None:
        self.rows, self.parts = rows, parts
        # From the offsets in the mapped file, chunk by chunk; reading a column would copy it into memory.
        lengths = np.empty((len(rows), 2), dtype=np.int32)
        for column, side in enumerate(("source", "target")):
            start = 0
            for chunk in rows.data.column(side).chunks:
                offsets = chunk.offsets.to_numpy()
                np.subtract(offsets[1:], offsets[:-1], out=lengths[start : start + len(chunk), column])
                start += len(chunk)
        lengths += 1  # EOS
        self.lengths: Int[np.ndarray, "pairs 2"] = lengths

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> Example:
        return self.__getitems__([index])[0]

    def __getitems__(self, indices: list[int]) -> list[Example]:
        """The pairs of a batch in one read; DataLoader calls this."""
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
    """The tokenized training pairs of all prefixes, and the report on them.

    `exclude` lists the held-out corpora (validation and test) for the overlap filter. The result is cached under
    `cache_dir` by the content of all files, the tokenizers and the filters.
    Raises the errors of `iter_pairs`, and ValueError if no pair is left.
    """
    digests = [[file_digest(path) for path in corpus_files(prefix, direction)] for prefix in (*prefixes, *exclude)]
    models = [tokenizers.source.model, tokenizers.target.model]
    key = content_key([_FORMAT, len(prefixes), digests, models, filters])
    fill = partial(_write, prefixes, direction, tokenizers, filters, exclude)
    folder = cached_folder(cache_dir / "datasets" / key, fill)
    report = Report(**json.loads((folder / "report.json").read_text(encoding="utf-8")))
    return TrainingData(Dataset.from_file(str(folder / "pairs.arrow")), report.parts), report


def encode_pairs(pairs: Pairs, tokenizers: TokenizerPair) -> list[Example]:
    """All pairs of a validation or test corpus as ids. Index n is line n; nothing is dropped."""
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
    """Reads the corpora once and never holds their text in memory."""
    logger.info("Tokenizing the training pairs")
    changed, dropped, tokens = Counter[str](), Counter[str](), np.zeros(3, dtype=np.int64)
    parts, same = [0] * len(prefixes), 0
    reason = filters.text_filter((read_pairs(prefix, direction) for prefix in exclude), direction)
    kept = _kept_by_text(prefixes, direction, reason, dropped, changed)
    with ArrowWriter(features=_FEATURES, path=str(folder / "pairs.arrow")) as writer:
        while chunk := list(islice(kept, _CHUNK)):
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
    report = Report(
        pairs, number, parts, source_tokens, target_tokens, dict(+dropped), dict(sorted(changed.items())), same
    )
    if not report.kept:
        raise ValueError(f"No training pair is left: {report}; check {', '.join(prefixes)} and the filters.")
    (folder / "report.json").write_text(json.dumps(asdict(report)), encoding="utf-8")


def _kept_by_text(
    prefixes: Sequence[str],
    direction: Direction,
    reason: Callable[[str, str], str],
    dropped: Counter[str],
    changed: Counter[str],
) -> Iterator[tuple[str, str, int]]:
    """Normalized source, normalized target and corpus number of each pair that `reason` does not drop.

    Adds to two counters: `dropped` pairs by reason, and lines `changed` by normalization, by language and kind.
    """
    read = 0
    for corpus, prefix in enumerate(prefixes):
        for source, target in iter_pairs(prefix, direction):
            changed.update(f"{direction.source} {kind}" for kind in changes(source))
            changed.update(f"{direction.target} {kind}" for kind in changes(target))
            read += 1
            if read % _LOG_EVERY == 0:
                logger.info("%s sentence pairs read", f"{read:,}")
            source, target = normalize(source), normalize(target)
            if why := reason(source, target):
                dropped[why] += 1
            else:
                yield source, target, corpus
