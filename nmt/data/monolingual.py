"""Text without translations: the lines of files, normalized, filtered and tokenized once."""

import json
import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from datasets import Dataset, Features, List, Value
from datasets.arrow_writer import ArrowWriter

from nmt.data.cache import cached_folder, content_key
from nmt.data.dataset import TrainingData
from nmt.data.known_files import ReadLines, Sources, count_lines
from nmt.data.seen_texts import SeenTexts
from nmt.errors import Mistake
from nmt.files import read_json
from nmt.text import Tokenizer, normalize
from nmt.text.lines import iter_lines
from nmt.text.normalize import without_punctuation
from nmt.text.tone_marks import ToneMarks, tone_marks_of_file, with_tone_marks

logger = logging.getLogger(__name__)

# Part of the cache key. Increment it when a code change gives different rows for the same files and settings.
_FORMAT = 5
_CHUNK = 10_000
# A line is stored as a pair with an empty target, so that lines are read and batched in the same way as pairs.
_FEATURES = Features({"source": List(Value("int32")), "target": List(Value("int32"))})


@dataclass(frozen=True)
class Lines:
    """The lines of a text file from `start` up to, but not including, `end`, counted from 0."""

    file: Path
    start: int
    end: int
    tone_marks: ToneMarks | None = None
    """The style in which Vietnamese tone marks are written; None if they stay as they are."""

    def __iter__(self) -> Iterator[str]:
        """Yields each line, normalized and in the style."""
        yield from self.lines(iter_lines)

    def lines(self, read: ReadLines, *, to_end: bool = False) -> Iterator[str]:
        """Yields each line, normalized and in the style. With `to_end`, the lines that follow are read as well."""
        lines = read(self.file)
        for line in islice(lines, self.start, self.end):
            yield with_tone_marks(normalize(line), self.tone_marks)
        if to_end:
            for _ in lines:
                pass


class Split(NamedTuple):
    """The lines of each training file, the lines for validation, and further lines that training must not read."""

    train: list[Lines]
    valid: list[Lines]
    excluded: list[Lines]


def split_lines(
    train: Sequence[Path],
    valid: Sequence[Path] | None,
    number: int,
    exclude: Sequence[Path] = (),
    *,
    tone_marks: ToneMarks | None = None,
    cache_dir: Path | None = None,
) -> Split:
    """Splits text files into lines for training and lines for validation.

    Without `valid` files, the last `number` lines of each training file are used for validation. The lines of
    Vietnamese files (*.vi) get the style of tone marks. Reads every file once to count its lines; with `cache_dir`,
    only those that have changed since they were last read. Raises whatever `iter_lines` raises, and Mistake if a
    training file has fewer than 2 x `number` lines.
    """

    def lines(path: Path, start: int, end: int) -> Lines:
        return Lines(path, start, end, tone_marks_of_file(path, tone_marks))

    lengths = {path: count_lines(path, cache_dir) for path in dict.fromkeys([*train, *(valid or []), *exclude])}
    whole, held_out, excluded = (
        [lines(path, 0, lengths[path]) for path in files] for files in (train, valid or [], exclude)
    )
    if valid is not None:
        return Split(whole, held_out, excluded)
    for path in train:
        if lengths[path] < 2 * number:
            raise Mistake(
                f"{path} has {lengths[path]} lines, and more than half of them would be held out for validation: set "
                f"data.valid_lines to less than {number}, or name separate files in data.valid."
            )
    return Split(
        [lines(path, 0, lengths[path] - number) for path in train],
        [lines(path, lengths[path] - number, lengths[path]) for path in train],
        excluded,
    )


@dataclass(frozen=True)
class LineFilters:
    """Which training lines are kept: lines that are not empty and have at most `max_tokens` pieces, including EOS.

    drop_duplicates: keep only the first of identical lines; drop_overlap: drop lines that also occur among the
    validation or excluded lines, ignoring case, punctuation and spaces.
    """

    max_tokens: int
    drop_duplicates: bool
    drop_overlap: bool


def training_lines(
    split: Split, tokenizer: Tokenizer, filters: LineFilters, cache_dir: Path
) -> tuple[TrainingData, str]:
    """The tokenized training lines, as pairs without a target, and a report on them.

    The result is cached under `cache_dir`, keyed by the contents of all files, the tokenizer and the filters. Raises
    whatever `Sources` raises, and Mistake if no line is left.
    """
    sources = Sources((part.file for lines in split for part in lines), cache_dir)
    parts = [[(sources.digests[part.file], part.start, part.end, part.tone_marks) for part in lines] for lines in split]
    key = content_key(["lines", _FORMAT, parts, tokenizer.model, filters])
    folder = cached_folder(
        cache_dir / "datasets" / key, partial(_write, split, tokenizer, filters, sources.lines), "tokenizing this text"
    )
    kept, report = read_json(folder / "report.json")
    return TrainingData(Dataset.from_file(str(folder / "pairs.arrow")), kept), report


def encoded_lines(lines: Sequence[Lines], tokenizer: Tokenizer) -> list[list[int]]:
    """The pieces of each non-empty line."""
    return [ids for ids in tokenizer.encode_all([line for part in lines for line in part]) if ids]


def _write(split: Split, tokenizer: Tokenizer, filters: LineFilters, read: ReadLines, folder: Path) -> None:
    """Writes the rows and the report. Every file is read to its end, where `read` checks it."""
    logger.info("Tokenizing the training lines")
    held_out = (
        {
            without_punctuation(line)
            for part in (*split.valid, *split.excluded)
            for line in part.lines(read, to_end=True)
        }
        if filters.drop_overlap
        else set[str]()
    )
    dropped, seen, kept, tokens = Counter[str](), SeenTexts(), [0] * len(split.train), 0
    with ArrowWriter(features=_FEATURES, path=str(folder / "pairs.arrow")) as writer:
        for number, part in enumerate(split.train):
            lines = part.lines(read, to_end=True)
            while chunk := list(islice(lines, _CHUNK)):
                for line, ids in zip(chunk, tokenizer.encode_all(chunk), strict=True):
                    repeated = filters.drop_duplicates and seen.add(line)
                    if not ids:
                        dropped["empty"] += 1
                    elif repeated:
                        dropped["duplicate"] += 1
                    elif held_out and without_punctuation(line) in held_out:
                        dropped["overlap"] += 1
                    elif len(ids) >= filters.max_tokens:
                        dropped["too long"] += 1
                    else:
                        writer.write({"source": ids, "target": []})
                        kept[number] += 1
                        tokens += len(ids) + 1
        writer.finalize()
    reasons = ", ".join(f"{count:,} {reason}" for reason, count in dropped.items()) or "none"
    lines_read = sum(kept) + sum(dropped.values())
    report = f"{lines_read:,} lines, {sum(kept):,} kept ({tokens:,} tokens); dropped: {reasons}"
    if not sum(kept):
        files = ", ".join(str(part.file) for part in split.train)
        raise Mistake(f"No training line is left: {report}; check {files} and the filters.")
    (folder / "report.json").write_text(json.dumps([kept, report]), encoding="utf-8")
