"""A tokenizer with settings that nmt.train never chooses is refused, before it cuts text differently somewhere."""

import io
import re
import struct
from pathlib import Path
from typing import Any

import pytest
import sentencepiece

from nmt.errors import Mistake
from nmt.text import Tokenizer
from nmt.text.tokenizer import _OPTIONS

LINES = ["tôi không biết nói gì", "hôm nay là ngày sinh nhật", "the cat sat on the mat", "the cat is on the mat"] * 5
REMEDY = ": copy the run's own tokenizer file back, or train the run again."


def model(**changes: Any) -> bytes:
    """A small model with the settings of nmt.train, apart from these."""
    written = io.BytesIO()
    options = {**_OPTIONS, "model_type": "bpe", "vocab_size": 320, "hard_vocab_limit": False, **changes}
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(LINES), model_writer=written, **options)
    return written.getvalue()


def number(value: int) -> bytes:
    """A number in protobuf: seven bits a byte, the lowest first, and a mark on all bytes except the last."""
    return bytes([value & 0x7F | 0x80]) + number(value >> 7) if value > 0x7F else bytes([value])


def field(index: int, value: int | bytes) -> bytes:
    if isinstance(value, int):
        return number(index << 3) + number(value)
    return number(index << 3 | 2) + number(len(value)) + value


def piece(text: str, type_: int) -> bytes:
    return field(1, field(1, text.encode()) + field(3, type_))


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_the_settings_of_training_are_accepted(kind: str) -> None:
    assert Tokenizer(model(model_type=kind)).kind == kind


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_type": "word"}, "is word, but a run needs unigram or bpe"),
        ({"model_type": "char"}, "is char, but a run needs unigram or bpe"),
        ({"treat_whitespace_as_suffix": True}, "has treat_whitespace_as_suffix true, but a run needs false"),
        ({"byte_fallback": False}, "has byte_fallback false, but a run needs true"),
        ({"unk_surface": "?"}, r"has unk_surface '\?', but a run needs ' ⁇ '"),
        (
            {"normalization_rule_name": "nmt_nfkc"},
            "has normalization_rule_name 'nmt_nfkc', but a run needs 'identity'",
        ),
        ({"add_dummy_prefix": False}, "has add_dummy_prefix false, but a run needs true"),
        ({"remove_extra_whitespaces": True}, "has remove_extra_whitespaces true, but a run needs false"),
        (
            {"user_defined_symbols": ["<name>"]},
            "has the piece '<name>' of type user-defined, but a run needs normal or byte there",
        ),
        (
            {"control_symbols": ["<2vi>"]},
            "has the piece '<2vi>' of type control, but a run needs normal or byte there",
        ),
        (
            {"split_by_whitespace": False},
            "has the piece '[^']*▁[^']*' with a space in it, but a run needs spaces only where a piece begins",
        ),
        ({"unk_id": 3, "eos_id": 1}, r"has PAD UNK BOS EOS = \(0, 3, 2, 1\), but a run needs \(0, 1, 2, 3\)"),
    ],
)
def test_other_settings_are_refused(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    file = tmp_path / "tokenizer.model"
    file.write_bytes(model(**changes))
    with pytest.raises(Mistake, match=f"^{re.escape(str(file))}: This SentencePiece model {message}{REMEDY}$"):
        Tokenizer.load(file)


def test_rules_that_change_decoded_text_are_refused(tmp_path: Path) -> None:
    rules = tmp_path / "rules.tsv"
    rules.write_text("61\t62\n", encoding="utf-8")  # a becomes b
    with pytest.raises(
        Mistake, match=r"the precompiled_charsmap of a denormalizer of [\d,]+ bytes, but a run needs ''"
    ):
        Tokenizer(model(denormalization_rule_tsv=str(rules)))


@pytest.mark.parametrize(
    ("added", "message"),
    [
        (piece("zzz", 5), "has the piece 'zzz' of type unused, but"),
        (piece("zzz", 77), "has the piece 'zzz' of type of a newer version, but"),
        (field(2, field(3, 99)), "is of a newer version, but a run needs unigram or bpe"),
        (field(2, field(24, 1)), "has treat_whitespace_as_suffix true, but"),
        (field(3, field(5, 0)), "has escape_whitespaces false, but"),
        (number(99 << 3 | 3) + number(99 << 3 | 4), "has groups of fields, but a run needs none"),
    ],
)
def test_settings_that_are_added_to_a_file_are_refused(added: bytes, message: str) -> None:
    with pytest.raises(Mistake, match=f"^This SentencePiece model {message}"):
        Tokenizer(model() + added)


@pytest.mark.parametrize("score", [-3e6, 3e38])
def test_a_log_probability_beyond_reason_is_refused(score: float) -> None:
    """Sums of such numbers lose the differences that decide between two segmentations."""
    added = field(1, field(1, b"zzz") + b"\x15" + struct.pack("<f", score))
    assert Tokenizer(model(model_type="bpe") + added).id_of("zzz") is not None, "ranks may be large"
    with pytest.raises(
        Mistake, match=r"has the piece 'zzz' with the log-probability .*, but a run needs one within 100"
    ):
        Tokenizer(model(model_type="unigram") + added)


def test_what_sentencepiece_ignores_hides_no_setting() -> None:
    """A number of four bytes after the field that counts."""
    unigram = number(3 << 3 | 5) + b"\x01\0\0\0"
    with pytest.raises(Mistake, match="This SentencePiece model is word, but"):
        Tokenizer(model(model_type="word") + field(2, unigram))


def test_what_sentencepiece_ignores_is_no_setting() -> None:
    """A field of an unknown number, or of another type than SentencePiece expects there."""
    plain = model()
    # Numbers of four and eight bytes where SentencePiece expects pieces and settings.
    fixed = [number(index << 3 | type_) + b"\xff" * size for index in (1, 2, 3, 5) for type_, size in ((5, 4), (1, 8))]
    for added in (field(99, b"name"), field(2, 5), b"\x9d\x06four", field(6, 2**60), *fixed):
        assert Tokenizer(plain + added).encode("hôm nay") == Tokenizer(plain).encode("hôm nay")
