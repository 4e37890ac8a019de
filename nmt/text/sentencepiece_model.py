"""The settings in a SentencePiece model, which is a protobuf message, compared with those that a run needs.

The fields are those of sentencepiece_model.proto (https://github.com/google/sentencepiece). The package's classes for
them cannot be used: they need a newer version of protobuf than other packages accept.
"""

from collections.abc import Iterator
from typing import NamedTuple

import sentencepiece

from nmt.errors import Mistake
from nmt.text.normalize import WORD_START

# Numbers of fields and values of enumerations.
_PIECES, _TRAINER, _NORMALIZER, _DENORMALIZER = 1, 2, 3, 5
_KINDS: dict[int | bytes, str] = {1: "unigram", 2: "bpe", 3: "word", 4: "char"}
_PIECE_TYPES: dict[int | bytes, str] = {
    1: "normal",
    2: "unknown",
    3: "control",
    4: "user-defined",
    5: "unused",
    6: "byte",
}
_SPECIAL_TYPES = ("control", "unknown", "control", "control")  # of PAD, UNK, BOS and EOS
_SIZES = {1: 8, 5: 4}  # bytes of numbers whose length is fixed

_MOST_LOG = 100.0
"""Largest accepted absolute value of a piece's log-probability; the rarest pieces have about -20.

With much larger values, the sums would differ from SentencePiece's, which begins a new sum where float32 would round
too much.
"""


class _Setting(NamedTuple):
    """A field that decides how text is cut or joined, its value if it is not stored, and the value that a run needs."""

    message: int
    field: int
    name: str
    default: int | bytes
    needed: int | bytes


_SETTINGS = (
    _Setting(_TRAINER, 24, "treat_whitespace_as_suffix", 0, 0),
    _Setting(_TRAINER, 35, "byte_fallback", 0, 1),
    _Setting(_TRAINER, 44, "unk_surface", " \u2047 ".encode(), " \u2047 ".encode()),
    _Setting(_NORMALIZER, 1, "normalization_rule_name", b"", b"identity"),
    _Setting(_NORMALIZER, 2, "precompiled_charsmap", b"", b""),
    _Setting(_NORMALIZER, 3, "add_dummy_prefix", 1, 1),
    _Setting(_NORMALIZER, 4, "remove_extra_whitespaces", 1, 0),
    _Setting(_NORMALIZER, 5, "escape_whitespaces", 1, 1),
    _Setting(_DENORMALIZER, 2, "the precompiled_charsmap of a denormalizer", b"", b""),
)


def checked_kind(processor: sentencepiece.SentencePieceProcessor) -> str:
    """The kind of a loaded model, unigram or bpe.

    Raises Mistake for settings that nmt.train never chooses: with them, decoding does not restore every text, or
    subword sampling, the words of maps and the page that is one file do not cut text as SentencePiece does.
    """
    messages, types = dict.fromkeys((_TRAINER, _NORMALIZER, _DENORMALIZER), b""), list[str]()
    # SentencePiece's own copy: if a message or a field is stored twice, the copy has what it made of them.
    for number, value in _fields(processor.serialized_model_proto()):
        if isinstance(value, bytes):
            if number == _PIECES:
                types.append(_PIECE_TYPES.get(dict(_fields(value)).get(3, 1), "of a newer version"))
            elif number in messages:
                messages[number] = value
    stored = {number: dict(_fields(message)) for number, message in messages.items()}
    kind = _KINDS.get(stored[_TRAINER].get(3, 1), "of a newer version")
    if kind not in ("unigram", "bpe"):
        raise _refusal(f"is {kind}", "unigram or bpe")
    for message, field, name, default, needed in _SETTINGS:
        if (value := stored[message].get(field, default)) != needed:
            raise _refusal(f"has {name} {_shown(value)}", _shown(needed))
    ids = list(range(len(types)))
    pieces: list[str] = processor.id_to_piece(ids)
    scores: list[float] = processor.get_score(ids)
    for id_, type_, piece, score in zip(ids, types, pieces, scores, strict=True):
        allowed = (_SPECIAL_TYPES[id_],) if id_ < len(_SPECIAL_TYPES) else ("normal", "byte")
        if type_ not in allowed:
            raise _refusal(f"has the piece {piece!r:.60} of type {type_}", f"{' or '.join(allowed)} there")
        if WORD_START in piece[1:]:
            raise _refusal(f"has the piece {piece!r:.60} with a space in it", "spaces only where a piece begins")
        if kind == "unigram" and abs(score) > _MOST_LOG:
            raise _refusal(
                f"has the piece {piece!r:.60} with the log-probability {score:g}", f"one within {_MOST_LOG:g} of zero"
            )
    return kind


def _shown(value: int | bytes) -> str:
    if isinstance(value, int):
        return {0: "false", 1: "true"}.get(value, str(value))
    text = value.decode(errors="replace")
    return f"{text!r:.60}" if text.isprintable() else f"of {len(value):,} bytes"


def _refusal(what: str, needed: str) -> Mistake:
    return Mistake(
        f"This SentencePiece model {what}, but a run needs {needed}: copy the run's own tokenizer file back, or "
        "train the run again."
    )


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The numbers and values of a message's fields, except numbers of four or eight bytes.

    See https://protobuf.dev/programming-guides/encoding.
    """
    position = 0
    while position < len(message):
        tag, position = _varint(message, position)
        number, wire_type = divmod(tag, 8)
        if wire_type == 0:
            value, position = _varint(message, position)
            yield number, value
        elif wire_type == 2:
            size, position = _varint(message, position)
            yield number, message[position : position + size]
            position += size
        elif wire_type in _SIZES:
            position += _SIZES[wire_type]  # scores, which are read elsewhere, and what SentencePiece ignores
        else:
            raise _refusal("has groups of fields", "none")


def _varint(message: bytes, position: int) -> tuple[int, int]:
    """The number that begins at a position, in groups of seven bits, and the position after it."""
    value = shift = 0
    while True:
        byte = message[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
