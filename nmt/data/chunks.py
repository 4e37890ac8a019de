"""Chunks of a training corpus: each is normalized, filtered and tokenized on its own, without importing torch.

Only finding duplicates needs the earlier chunks. A tokenized chunk therefore has the digests of its pairs, and `Merge`
finds the duplicates in the order of the corpus.
"""

import io
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from itertools import chain, repeat
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Int32, UInt8, UInt64

from nmt.config.direction import Direction
from nmt.data.filters import Filters, TextFilter
from nmt.data.seen_texts import SeenTexts, digest
from nmt.text import Tokenizer, TokenizerPair, changes, normalize

REASONS = ("", "duplicate", "empty", "overlap", "swapped", "too long", "ratio")
"""Why pairs are dropped; the first entry is for pairs that are kept."""
_CODES = {reason: code for code, reason in enumerate(REASONS)}
_DUPLICATE = _CODES["duplicate"]


@dataclass(frozen=True)
class Chunk:
    """Consecutive pairs of one corpus, unchanged."""

    corpus: int
    sources: str
    targets: str
    """The lines, joined by line feeds."""
    documents: tuple[int, ...] | None
    """The number of pairs of each document; None for a corpus without boundaries."""

    @cached_property
    def digest(self) -> str:
        """Identifies the chunk by its content."""
        sides = [side.encode() for side in (self.sources, self.targets)]
        described = repr((self.corpus, self.documents, len(sides[0])))
        return blake2b(b"".join([*sides, described.encode()]), digest_size=16).hexdigest()


class TokenizedChunk(NamedTuple):
    """What is known of a chunk without the chunks before it.

    A group is a document, or a pair of a corpus without boundaries. The pairs that are kept unless their group is a
    duplicate are the candidates.
    """

    reasons: UInt8[np.ndarray, " pairs"]
    """The index in REASONS of why each pair is dropped even if its group is not a duplicate."""
    groups: Int32[np.ndarray, " groups"]
    """The number of pairs of each group."""
    digests: UInt64[np.ndarray, " groups_or_none"]
    """Empty if duplicates are kept."""
    empty: Bool[np.ndarray, " groups"]
    """Groups of one pair without text, which are never called duplicates."""
    same: Bool[np.ndarray, " candidates"]
    """Candidates whose sides are the same text."""
    source_lengths: Int32[np.ndarray, " candidates"]
    target_lengths: Int32[np.ndarray, " candidates"]
    source_ids: Int32[np.ndarray, " source_pieces"]
    target_ids: Int32[np.ndarray, " target_pieces"]
    changed: UInt8[np.ndarray, " bytes"]
    """JSON: the number of lines changed by normalization, by language and kind of change."""

    def packed(self) -> bytes:
        file = io.BytesIO()
        np.savez(file, **self._asdict())
        return file.getvalue()

    @classmethod
    def unpacked(cls, content: bytes) -> "TokenizedChunk":
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            return cls(**{name: arrays[name] for name in cls._fields})


class TextFilters(NamedTuple):
    """The text filters of pairs and of whole documents; see `Filters.text_filter`."""

    line: TextFilter
    """For a pair of a corpus without boundaries, which must not contain any held-out line."""
    document: TextFilter
    """For a whole document, which must not repeat a held-out document."""
    line_of_document: TextFilter
    """For a pair of a document, which must not contain a line of a held-out corpus without boundaries."""


@dataclass(frozen=True)
class Tokenizing:
    """Turns a chunk into a tokenized one; can be pickled, for other processes."""

    direction: Direction
    tokenizers: TokenizerPair
    filters: Filters
    text_filters: TextFilters

    def __call__(self, chunk: Chunk) -> TokenizedChunk:
        changed = Counter[str]()
        source, target = (
            self._normalized(lines.split("\n"), language, tokenizer, changed)
            for lines, language, tokenizer in zip(
                (chunk.sources, chunk.targets),
                (self.direction.source, self.direction.target),
                self.tokenizers,
                strict=True,
            )
        )
        if chunk.documents is None:
            texts: Sequence[tuple[str, str]] = [*zip(source, target, strict=True)]
            reasons = group_reasons = [self.text_filters.line(*pair) for pair in texts]
        else:
            texts = [
                ("\n".join(source[start:end]), "\n".join(target[start:end])) for start, end in _spans(chunk.documents)
            ]
            group_reasons = [self.text_filters.document(*pair) for pair in texts]
            of_pairs = chain.from_iterable(map(repeat, group_reasons, chunk.documents))
            reasons = [
                whole or self.text_filters.line_of_document(*pair)
                for whole, pair in zip(of_pairs, zip(source, target, strict=True), strict=True)
            ]
        # Unambiguous: lines contain no line feed, and both sides of a document have the same number of lines.
        digests = [digest("\n".join(text)) for text in texts] if self.filters.drop_duplicates else []
        codes = np.array([_CODES[reason] for reason in reasons], dtype=np.uint8)
        ids = [
            tokenizer.encode_all([line for line, reason in zip(lines, reasons, strict=True) if not reason])
            for lines, tokenizer in zip((source, target), self.tokenizers, strict=True)
        ]
        lengths = np.array([[len(line) for line in side] for side in ids], dtype=np.int32).reshape(2, -1)
        too_long, unequal = self.filters.by_length(lengths.T + 1)  # with EOS
        kept = ~(too_long | unequal)
        same = [one == other for one, other, why in zip(source, target, reasons, strict=True) if not why]
        codes[codes == 0] = np.select([too_long, unequal], [_CODES["too long"], _CODES["ratio"]], 0)
        return TokenizedChunk(
            reasons=codes,
            groups=np.array(chunk.documents or [1] * len(source), dtype=np.int32),
            digests=np.array(digests, dtype=np.uint64),
            empty=np.array([reason == "empty" for reason in group_reasons]),
            same=np.array(same, dtype=bool)[kept],
            source_lengths=lengths[0][kept],
            target_lengths=lengths[1][kept],
            source_ids=_joined(ids[0], kept),
            target_ids=_joined(ids[1], kept),
            changed=np.frombuffer(json.dumps(dict(+changed)).encode(), dtype=np.uint8),
        )

    def _normalized(self, lines: list[str], language: str, tokenizer: Tokenizer, changed: Counter[str]) -> list[str]:
        """The lines as the filters and the tokenizer read them. Counts the changes."""
        texts = []
        for line in lines:
            kinds = changes(line)
            normalized = normalize(line) if kinds else line  # most lines of most corpora stay as they are
            texts.append(tokenizer.respelled(normalized))
            changed.update(f"{language} {kind}" for kind in kinds)
            changed[f"{language} tone marks"] += texts[-1] != normalized
        return texts


class Merge:
    """Finds the duplicates among the chunks of a corpus, given in order, and counts."""

    def __init__(self, corpora: int) -> None:
        self.dropped, self.changed = np.zeros(len(REASONS), dtype=np.int64), Counter[str]()
        self.parts, self.same = [0] * corpora, 0
        self.tokens = np.zeros(2, dtype=np.int64)
        self._lines, self._documents = SeenTexts(), SeenTexts()
        self._groups = 0

    def kept(self, chunk: Chunk, tokenized: TokenizedChunk) -> tuple[list[tuple[Any, Any]], Int32[np.ndarray, " kept"]]:
        """The source and the target of the pairs to keep, each as lengths and ids, and the numbers of their groups."""
        seen = self._lines if chunk.documents is None else self._documents
        repeated = np.zeros(len(tokenized.groups), dtype=bool)
        if len(tokenized.digests):
            repeated = seen.add_digests(tokenized.digests) & ~tokenized.empty
        numbers = np.arange(len(tokenized.groups), dtype=np.int32) + np.int32(self._groups + 1)
        self._groups += len(tokenized.groups)
        repeats = np.repeat(repeated, tokenized.groups)
        reasons = np.where(repeats, np.uint8(_DUPLICATE), tokenized.reasons)
        self.dropped += np.bincount(reasons, minlength=len(REASONS))
        self.changed.update(json.loads(tokenized.changed.tobytes()))
        candidates = tokenized.reasons == 0
        kept = ~repeats[candidates]
        self.parts[chunk.corpus] += int(kept.sum())
        self.same += int(tokenized.same[kept].sum())
        sides = []
        for side, (lengths, ids) in enumerate(
            (
                (tokenized.source_lengths, tokenized.source_ids),
                (tokenized.target_lengths, tokenized.target_ids),
            )
        ):
            sides.append((lengths[kept], ids[np.repeat(kept, lengths)]))
            self.tokens[side] += len(sides[side][1]) + len(sides[side][0])  # with EOS
        return sides, np.repeat(numbers, tokenized.groups)[reasons == 0]


def _spans(sizes: Iterable[int]) -> list[tuple[int, int]]:
    ends = np.cumsum([*sizes]).tolist()
    return [*zip([0, *ends], ends, strict=False)]


def _joined(lines: list[list[int]], kept: Bool[np.ndarray, " lines"]) -> Int32[np.ndarray, " pieces"]:
    return np.fromiter(
        chain.from_iterable(line for line, keep in zip(lines, kept.tolist(), strict=True) if keep), dtype=np.int32
    )
