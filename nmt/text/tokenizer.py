"""Subword pieces by SentencePiece (Kudo & Richardson 2018), with the same four special ids everywhere."""

import io
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import sentencepiece

from nmt.text.segmentation import BPEDropout, Pieces, UnigramSampling, words

PAD, UNK, BOS, EOS = 0, 1, 2, 3

KINDS = ("unigram", "bpe")
# Of more lines so many are drawn: SentencePiece holds them all in memory.
_MOST_LINES = 2_000_000
# SentencePiece's own normalisation and its trimming of spaces would break decode(encode(text)) == text. A unigram model
# depends on the number of threads in its last digits, so that is fixed too. Log level 2 is errors only.
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
    """One SentencePiece model. decode(encode(text)) == text for every normalised text.

    Holds the model's bytes, so it can be pickled and stored. Raises ValueError when the bytes are no SentencePiece
    model or when its special ids are not PAD UNK BOS EOS = 0 1 2 3.
    """

    def __init__(self, model: bytes) -> None:
        self.model = model
        self._processor = _processor(model)

    @classmethod
    def load(cls, path: Path) -> "Tokenizer":
        """The model stored in a file. Raises FileNotFoundError, or ValueError naming the file when it is no model."""
        if not path.is_file():
            raise FileNotFoundError(f"No tokenizer model at {path}; give the path of a file that training wrote.")
        try:
            return cls(path.read_bytes())
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error

    @property
    def size(self) -> int:
        """Number of pieces, the special ones included."""
        return self._processor.get_piece_size()

    def encode(self, text: str) -> list[int]:
        """Ids of the pieces of a normalised line, without BOS and EOS."""
        return self._processor.encode(text)

    def encode_all(self, texts: list[str]) -> list[list[int]]:
        """Ids of each line."""
        return self._processor.encode(texts, num_threads=1)

    def resample(self, ids: Sequence[int], alpha: float, seed: int) -> list[int]:
        """Another segmentation of the text of `ids`, drawn with `seed`.

        Of a byte-pair model, `alpha` is the probability with which a merge is skipped (Provilkov et al. 2020); of a
        unigram model, segmentations are drawn by their probability to the power of `alpha` (Kudo 2018, section 3.3).
        Raises ValueError for a model without pieces for bytes.
        """
        random = Random(seed)
        drawn = [piece for word in words(self.decode(ids)) for piece in self._sampling.draw(word, alpha, random)]
        return self._pieces.to_ids(drawn)

    @cached_property
    def _pieces(self) -> Pieces:
        return Pieces(self._processor)

    @cached_property
    def _sampling(self) -> BPEDropout | UnigramSampling:
        try:
            self._processor.nbest_encode_as_ids("", 1)
        except RuntimeError:  # A byte-pair model has no best segmentations.
            return BPEDropout(self._pieces)
        return UnigramSampling(self._pieces)

    def decode(self, ids: Sequence[int]) -> str:
        """The text of the ids; PAD, BOS and EOS are dropped."""
        return self._processor.decode([i for i in ids if i not in (PAD, BOS, EOS)])

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """The piece of each id; U+2581 marks the start of a word."""
        return [self._processor.id_to_piece(i) for i in ids]

    def __reduce__(self) -> tuple[Callable[[bytes], "Tokenizer"], tuple[bytes]]:
        return type(self), (self.model,)


class TokenizerPair(NamedTuple):
    """The tokenizers of the two sides; with a joint vocabulary both are the same object."""

    source: Tokenizer
    target: Tokenizer

    @property
    def joint(self) -> bool:
        """Whether both sides share one vocabulary."""
        return self.source is self.target


def train_tokenizer(lines: Iterable[str], *, kind: str, size: int, seed: int = 0) -> bytes:
    """A SentencePiece model of `size` pieces learned from normalised lines.

    kind: 'unigram' (Kudo 2018) or 'bpe' (Sennrich et al. 2016). Nothing is rewritten, and unseen characters fall back
    to bytes. More than two million lines are represented by two million that `seed` draws. Raises as `lines` does, and
    ValueError for an unknown kind, for no text, and for a size outside of what the text allows, naming the limit.
    """
    if kind not in KINDS:
        raise ValueError(f"Unknown kind of tokenizer '{kind}'; choose one of {', '.join(KINDS)}.")
    model, own = io.BytesIO(), list[Exception]()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=_watched(lines_drawn(lines, _MOST_LINES, seed), own),
            model_writer=model,
            model_type=kind,
            vocab_size=size,
            **_OPTIONS,
        )
    except RuntimeError as error:
        raise (own[0] if own else _training_error(str(error), size)) from error
    return model.getvalue()


def lines_drawn(lines: Iterable[str], number: int, seed: int) -> Iterator[str]:
    """All lines where there are at most `number`, else as many, each with the same chance (Vitter 1985, algorithm R).

    SentencePiece would draw others in every process, whatever its seed.
    """
    random, kept = Random(seed), list[str]()
    for place, line in enumerate(lines):
        if place < number:
            kept.append(line)
        elif (chosen := random.randrange(place + 1)) < number:
            kept[chosen] = line
    yield from kept


def _watched(lines: Iterable[str], errors: list[Exception]) -> Iterator[str]:
    """The lines; what ends them too early is kept, because SentencePiece makes a RuntimeError of it."""
    try:
        yield from lines
    except Exception as error:
        errors.append(error)
        raise


def _processor(model: bytes) -> sentencepiece.SentencePieceProcessor:
    try:
        processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    except RuntimeError as error:
        raise ValueError(f"These {len(model)} bytes are not a SentencePiece model.") from error
    if not model:
        raise ValueError("These 0 bytes are not a SentencePiece model.")
    special = (processor.pad_id(), processor.unk_id(), processor.bos_id(), processor.eos_id())
    if special != (PAD, UNK, BOS, EOS):
        raise ValueError(f"The SentencePiece model has PAD UNK BOS EOS = {special}; expected (0, 1, 2, 3).")
    return processor


def _training_error(message: str, size: int) -> Exception:
    if match := re.search(r"too high .* value <= (\d+)", message):
        less = ", better much less: about 500 suits some hundred lines" if int(match[1]) > 500 else ""
        return ValueError(
            f"Vocabulary size {size} is too large for this text; set tokenizer.size to at most {match[1]}{less}."
        )
    if match := re.search(r"required_chars\. \d+ vs (\d+)", message):
        return ValueError(
            f"Vocabulary size {size} is too small for this text; set tokenizer.size to at least {match[1]}."
        )
    if "vocab_size()" in message or "insert_id(" in message:
        return ValueError(f"Vocabulary size {size} has no room for PAD, UNK, BOS and EOS; set tokenizer.size to more.")
    if "!sentences_.empty()" in message:
        return ValueError("There is no text to train a tokenizer on; give at least one line that is not empty.")
    return RuntimeError(message)
