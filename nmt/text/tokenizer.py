"""Subword tokenizers based on SentencePiece (Kudo & Richardson 2018), always with the same four special ids."""

import io
import logging
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import sentencepiece

from nmt.errors import Mistake
from nmt.text.lines import character_start
from nmt.text.segmentation import BPEDropout, Pieces, UnigramSampling, words
from nmt.text.sentencepiece_model import checked_kind
from nmt.text.tone_marks import ToneMarks, tone_marks_of, with_tone_marks

logger = logging.getLogger(__name__)

PAD, UNK, BOS, EOS = 0, 1, 2, 3

KINDS = ("unigram", "bpe")
USUAL_SIZE = 8000
"""Number of pieces if no size is given and the text supports that many."""

# SentencePiece holds all lines in memory, so only this many lines of a larger text are used.
_MOST_LINES = 2_000_000
# SentencePiece skips longer lines without a word.
_LONGEST_LINE = 4192
# SentencePiece's own normalization and its trimming of spaces would break decode(encode(text)) == text. The last digits
# of unigram scores depend on the number of threads, so that number is fixed. Log level 2 shows errors only.
_OPTIONS: dict[str, Any] = {
    "normalization_rule_name": "identity",
    "remove_extra_whitespaces": False,
    "byte_fallback": True,
    "character_coverage": 1.0,
    "pad_id": PAD,
    "unk_id": UNK,
    "bos_id": BOS,
    "eos_id": EOS,
    "num_threads": 4,
    "minloglevel": 2,
}


class Tokenizer:
    """A SentencePiece model for which decode(encode(text)) == respelled(text) holds for every normalized text.

    respelled(text) is the text itself, or with `tone_marks`, the text with its Vietnamese tone marks in that style.
    Keeps the bytes of the model, so that it can be pickled and stored; `kind` is unigram or bpe. Raises Mistake if the
    bytes are not a SentencePiece model, if the special ids of the model are not PAD UNK BOS EOS = 0 1 2 3, or if it has
    settings that `train_tokenizer` never chooses.
    """

    def __init__(self, model: bytes, tone_marks: ToneMarks | None = None) -> None:
        message = f"This is not a SentencePiece model ({len(model)} bytes); copy the run's own tokenizer file back."
        if not model:  # SentencePiece accepts empty bytes
            raise Mistake(message)
        try:
            processor = sentencepiece.SentencePieceProcessor(model_proto=model)
            # SentencePiece reads a model with a changed byte, and fails only when it gives a piece that is not UTF-8.
            ids = list(range(processor.get_piece_size()))
            processor.id_to_piece(ids)
            if not all(map(math.isfinite, processor.get_score(ids))):
                raise Mistake(message)
        # UnicodeDecodeError: also where SentencePiece quotes bytes of the model in its own error.
        except (RuntimeError, UnicodeDecodeError) as error:
            raise Mistake(message) from error
        special = (processor.pad_id(), processor.unk_id(), processor.bos_id(), processor.eos_id())
        if special != (PAD, UNK, BOS, EOS):
            raise Mistake(
                f"This SentencePiece model has PAD UNK BOS EOS = {special}, but a run needs (0, 1, 2, 3): copy the "
                "run's own tokenizer file back, or train the run again."
            )
        self.kind = checked_kind(processor)
        self.model, self.tone_marks, self._processor = model, tone_marks, processor

    @classmethod
    def load(cls, path: Path, tone_marks: ToneMarks | None = None) -> "Tokenizer":
        """Reads a model file. Raises Mistake if it does not exist, and if it is not a model."""
        if not path.is_file():
            raise Mistake(f"There is no tokenizer model at {path}; use a model that nmt.train wrote.")
        try:
            return cls(path.read_bytes(), tone_marks)
        except Mistake as error:
            raise Mistake(f"{path}: {error}") from error

    def in_style(self, tone_marks: ToneMarks | None) -> "Tokenizer":
        """The tokenizer with the same model for text in this style of tone marks."""
        if tone_marks == self.tone_marks:
            return self
        # A copy that shares the model; copy.copy would read and check it again, as unpickling does. None of the cached
        # properties depends on the style.
        styled = Tokenizer.__new__(Tokenizer)
        vars(styled).update(vars(self), tone_marks=tone_marks)
        return styled

    @property
    def size(self) -> int:
        """Number of pieces, including the four special ones."""
        return self._processor.get_piece_size()

    def respelled(self, text: str) -> str:
        """The normalized text in the tokenizer's style of tone marks, as `encode` reads it."""
        return with_tone_marks(text, self.tone_marks)

    def encode(self, text: str) -> list[int]:
        """Ids of the pieces of a normalized line, without BOS and EOS."""
        return self._processor.encode(self.respelled(text))

    def encode_all(self, texts: list[str]) -> list[list[int]]:
        """Ids of the pieces of each line, as in `encode`."""
        return self._processor.encode([self.respelled(text) for text in texts], num_threads=1)

    def resample(self, ids: Sequence[int], alpha: float, seed: int) -> list[int]:
        """A random segmentation of the text of `ids`.

        With a byte-pair model, `alpha` is the probability of skipping a merge (Provilkov et al. 2020). With a unigram
        model, segmentations are drawn in proportion to their probability raised to the power `alpha` (Kudo 2018,
        section 3.3).
        """
        random = Random(seed)
        drawn = [piece for word in words(self.decode(ids)) for piece in self._sampling.draw(word, alpha, random)]
        return self._pieces.to_ids(drawn)

    @cached_property
    def _pieces(self) -> Pieces:
        return Pieces(self._processor)

    @cached_property
    def _sampling(self) -> BPEDropout | UnigramSampling:
        return UnigramSampling(self._pieces) if self.kind == "unigram" else BPEDropout(self._pieces)

    def decode(self, ids: Sequence[int]) -> str:
        """The text of the ids; PAD, BOS and EOS are dropped."""
        return self._processor.decode([id_ for id_ in ids if id_ not in (PAD, BOS, EOS)])

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """The piece of each id; U+2581 marks the start of a word."""
        return [self._processor.id_to_piece(id_) for id_ in ids]

    @cached_property
    def alphabet(self) -> frozenset[str]:
        """The characters that occur in pieces; any other is spelled in bytes."""
        return frozenset(character for piece in self._pieces.ids for character in piece)

    def score(self, id_: int) -> float:
        """A piece's log-probability in a unigram model, or minus its rank by frequency in a byte-pair model."""
        score: float = self._processor.get_score(id_)
        return score

    def id_of(self, piece: str) -> int | None:
        """The id of a piece in the form that `pieces` returns; None if the vocabulary does not contain it."""
        id_: int = self._processor.piece_to_id(piece)
        # SentencePiece returns UNK for a piece that it does not have.
        return id_ if self._processor.id_to_piece(id_) == piece else None

    def __reduce__(self) -> tuple[Callable[..., "Tokenizer"], tuple[bytes, ToneMarks | None]]:
        return type(self), (self.model, self.tone_marks)


class TokenizerPair(NamedTuple):
    """The source and the target tokenizer, which have the same model if the vocabulary is joint."""

    source: Tokenizer
    target: Tokenizer

    @property
    def joint(self) -> bool:
        """Whether both sides share one vocabulary."""
        # The same bytes, not equal ones: separate models of two equal texts are equal, and have their own embeddings.
        return self.source.model is self.target.model

    def in_style(self, tone_marks: ToneMarks | None, *, source: str, target: str) -> "TokenizerPair":
        """The tokenizers for two languages, of which Vietnamese has its tone marks in this style."""
        return TokenizerPair(
            self.source.in_style(tone_marks_of(source, tone_marks)),
            self.target.in_style(tone_marks_of(target, tone_marks)),
        )


def train_tokenizer(
    lines: Iterable[str], *, kind: str, size: int | None, character_coverage: float, seed: int = 0
) -> bytes:
    """A SentencePiece model of `size` pieces, learned from normalized lines.

    kind: 'unigram' (Kudo 2018) or 'bpe' (Sennrich et al. 2016). The most frequent characters that make up
    `character_coverage` of the text have pieces of their own; all others are spelled as bytes. If there are more than
    two million lines, the model is learned from two million of them, drawn with `seed`. Without a size, the model has
    8,000 pieces, or as many as the text supports if that is fewer. Raises whatever iterating over `lines` raises, and
    Mistake for an unknown kind, no text, or a size that the text does not support.
    """
    if kind not in KINDS:
        raise Mistake(f"Unknown kind of tokenizer '{kind}'; choose one of {', '.join(KINDS)}.")
    drawn = cut_long_lines(draw_lines(lines, _MOST_LINES, seed))
    if rare := rare_characters(drawn, character_coverage):
        # SentencePiece has this option too, but accepts no coverage below 0.98. It never sees a rare character if the
        # lines are cut there, so it learns neither a piece for the character nor one that contains it.
        cut = re.compile(f"[{re.escape(''.join(rare))}]")
        drawn = [part for line in drawn for part in cut.split(line) if part.strip()]
    try:
        return _train(drawn, kind, USUAL_SIZE if size is None else size, character_coverage)
    except VocabularySizeError as error:
        if size is not None:
            raise
        logger.info(
            "tokenizer.size is null, and this text supports at most %s pieces: the vocabulary has %s instead of %s",
            *(f"{number:,}" for number in (error.largest, error.largest, USUAL_SIZE)),
        )
        return _train(drawn, kind, error.largest, character_coverage)


def rare_characters(lines: Iterable[str], coverage: float) -> list[str]:
    """The characters left over when the most frequent ones make up the fraction `coverage` of the text.

    Spaces do not count. Of equally frequent characters, the one with the lower code point is kept first.
    """
    counts = Counter[str]()
    for line in lines:
        counts.update(line)
    del counts[" "]
    by_frequency = sorted(counts, key=lambda character: (-counts[character], character))
    # Up to the character that reaches the coverage, which is itself kept. For 1.0, the sum is exactly the last one's.
    covered = accumulate(counts[character] for character in by_frequency)
    enough = coverage * counts.total()
    return [
        character
        for character, until_here in zip(by_frequency, covered, strict=True)
        if until_here - counts[character] >= enough
    ]


def draw_lines(lines: Iterable[str], number: int, seed: int) -> list[str]:
    """All lines, or `number` of them if there are more, drawn with equal probability (Vitter 1985, algorithm R).

    SentencePiece would sample different lines in every process, whatever the seed.
    """
    random, kept = Random(seed), list[str]()
    for index, line in enumerate(lines):
        if index < number:
            kept.append(line)
        elif (replaced := random.randrange(index + 1)) < number:
            kept[replaced] = line
    return kept


def cut_long_lines(lines: Sequence[str]) -> list[str]:
    """The lines, where those of more than 4,192 bytes are cut into parts that SentencePiece accepts.

    Cuts at a space and drops it, or between two characters if there is no space. Logs how many lines were cut.
    """
    parts, number_cut = list[str](), 0
    for line in lines:
        # A character has at most four bytes, so that few lines have to be encoded.
        if len(line) * 4 <= _LONGEST_LINE or len(rest := line.encode()) <= _LONGEST_LINE:
            parts.append(line)
            continue
        number_cut += 1
        while len(rest) > _LONGEST_LINE:
            end = rest.rfind(b" ", 1, _LONGEST_LINE + 1)
            start = end + 1
            if end == -1:
                start = end = character_start(rest, _LONGEST_LINE)
            parts.append(rest[:end].decode())
            rest = rest[start:]
        parts.append(rest.decode())
    if number_cut:
        logger.info(
            "Lines longer than SentencePiece's limit of %s bytes were cut to train the tokenizer (%s into %s parts); "
            "they stay whole everywhere else",
            *(f"{count:,}" for count in (_LONGEST_LINE, number_cut, len(parts) - len(lines) + number_cut)),
        )
    return parts


class VocabularySizeError(Mistake):
    """The text does not support a vocabulary of this size; it supports at most `largest` pieces."""

    def __init__(self, size: int, largest: int) -> None:
        advice = " For a few hundred lines, about 500 is a good size." if largest > 500 else ""
        super().__init__(
            f"Vocabulary size {size} is too large for this text; set tokenizer.size to at most {largest}, or to null "
            f"for a size that fits.{advice}"
        )
        self.largest = largest


def _train(lines: list[str], kind: str, size: int, character_coverage: float) -> bytes:
    """Trains a SentencePiece model. Raises Mistake as `train_tokenizer` does; SentencePiece itself raises only
    RuntimeError.
    """
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines),
            model_writer=model,
            model_type=kind,
            vocab_size=size,
            **_OPTIONS,
        )
        return model.getvalue()
    except RuntimeError as error:
        # SentencePiece has no types for its errors; the tests fail if the wording changes.
        message = str(error)
        if match := re.search(r"too high .* value <= (\d+)", message):
            raise VocabularySizeError(size, int(match[1])) from error
        if match := re.search(r"required_chars\. \d+ vs (\d+)", message):
            raise Mistake(
                f"Vocabulary size {size} is too small for this text, which needs {match[1]} pieces for its characters "
                f"alone; set tokenizer.size to at least {match[1]}, or lower tokenizer.character_coverage (now "
                f"{character_coverage:g}), so that rare characters are spelled as bytes."
            ) from error
        if "vocab_size()" in message or "insert_id(" in message:
            raise Mistake(
                f"Vocabulary size {size} leaves no room for PAD, UNK, BOS and EOS; set tokenizer.size to a higher "
                "value."
            ) from error
        if "!sentences_.empty()" in message:
            raise Mistake(
                "There is no text to train a tokenizer on; provide at least one line that is not empty."
            ) from error
        raise
