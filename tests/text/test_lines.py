"""A line ends at LF or CRLF and nothing else, whoever reads it."""

import errno
import io
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.data.documents import documents_of_file
from nmt.errors import CheckFailed, Mistake
from nmt.maps.links import Alignment, read_alignments
from nmt.serving.texts import segment
from nmt.text import normalize
from nmt.text.lines import LONGEST_LINE, iter_lines, lines_with_ends, text_lines

INSIDE = "\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
TEXT = st.text(alphabet=f"ab \n{INSIDE}", max_size=30)


def of_bytes(content: bytes) -> list[str]:
    return list(text_lines(io.BytesIO(content), "F"))


@given(TEXT)
@settings(deadline=None)
def test_a_line_ends_at_lf_or_crlf_alone(text: str) -> None:
    lines = lines_with_ends(text)
    assert "".join(lines) == text
    assert len(lines) == text.count("\n") + (not text.endswith("\n") and text != "")
    assert of_bytes(text.encode()) == [
        line.removesuffix("\n").removesuffix("\r") if line.endswith("\n") else line for line in lines
    ]


@given(TEXT)
@settings(deadline=None)
def test_the_server_and_the_filter_translate_the_same_lines(text: str) -> None:
    of_filter = [line for line in map(normalize, of_bytes(text.encode())) if line]
    assert [line for line in map(normalize, segment(text, "en").sentences) if line] == of_filter


@pytest.mark.parametrize("character", INSIDE)
def test_the_server_does_not_cut_a_sentence_at_other_ends(character: str) -> None:
    assert segment(f"How old is{character}Mai?", "en").sentences == [f"How old is{character}Mai?"]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"a\r\r\nb\r", ["a\r", "b\r"]),
        (b"\xef\xbb\xbf", []),
        (b"\xef\xbb\xbf\n", [""]),
        (b"\xef\xbb\xbfa\n\xef\xbb\xbfb", ["a", "\ufeffb"]),
        (b"\n\r\n", ["", ""]),
    ],
)
def test_examples(content: bytes, expected: list[str]) -> None:
    assert of_bytes(content) == expected


def test_a_long_first_line_after_a_byte_order_mark_is_cut_between_characters() -> None:
    [line] = of_bytes(b"\xef\xbb\xbf" + "đ".encode() * LONGEST_LINE)
    assert line == "đ" * (LONGEST_LINE // 2)


def test_a_byte_order_mark_is_dropped_from_alignments_and_documents(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_text("0-0 1?1\r\n", encoding="utf-8-sig")
    assert read_alignments(file) == [Alignment(frozenset({(0, 0)}), frozenset({(0, 0), (1, 1)}))]
    file.write_text("one\r\none\r\ntwo", encoding="utf-8-sig")
    assert documents_of_file(file, 3) == [0, 0, 1]


def test_a_disk_that_cannot_be_read_is_no_bug() -> None:
    class Damaged(io.BytesIO):
        def readline(self, size: int | None = -1) -> bytes:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    with pytest.raises(CheckFailed, match=r"F cannot be read \(Input/output error\); check the disk, or use a copy"):
        list(text_lines(Damaged(), "F"))


def test_a_file_of_a_byte_order_mark_alone_is_empty(tmp_path) -> None:
    (tmp_path / "a.en").write_bytes(b"\xef\xbb\xbf")
    with pytest.raises(Mistake, match=r"a\.en is empty; use a file with at least one line"):
        list(iter_lines(tmp_path / "a.en"))
