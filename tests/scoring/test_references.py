"""References: read unchanged, with a warning if normalization would change them."""

import logging
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest

from nmt.config.direction import Direction
from nmt.scoring.references import is_tokenized, read_references, warn_of_references
from nmt.text.tone_marks import ToneMarks

COMPOSED = ["bảy con mèo", "một", "hai  con", "ba"]


@pytest.fixture
def write(tmp_path: Path) -> Callable[[list[str]], str]:
    """Writes a corpus with these references; its prefix."""

    def prefix(references: list[str]) -> str:
        (tmp_path / "t.en").write_text("a\u00a0line\n" * len(references), encoding="utf-8")
        (tmp_path / "t.vi").write_text("".join(f"{line}\n" for line in references), encoding="utf-8")
        return str(tmp_path / "t")

    return prefix


def test_references_that_are_not_composed_are_kept_and_warned_of_once(
    write: Callable[[list[str]], str], caplog: pytest.LogCaptureFixture
) -> None:
    references = [unicodedata.normalize("NFD", line) for line in COMPOSED]
    with caplog.at_level(logging.WARNING):
        pairs = read_references(write(references), Direction("en", "vi"))
    assert pairs.target == references
    assert set(pairs.source) == {"a line"}
    assert len(caplog.records) == 1
    message = caplog.records[0].getMessage()
    assert "t.vi: references are scored unchanged" in message
    assert "normalization would change 3 of 4 lines (nfc 2, spaces 1), which may lower BLEU" in message


def test_pairs_with_swapped_languages_are_kept_and_warned_of_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "t.en").write_text("We drink tea.\nChúng tôi uống trà.\n", encoding="utf-8")
    (tmp_path / "t.vi").write_text("Chúng tôi uống trà.\nWe drink tea.\n", encoding="utf-8")
    pairs = read_references(str(tmp_path / "t"), Direction("en", "vi"))
    assert pairs.target == ["Chúng tôi uống trà.", "We drink tea."]
    [record] = caplog.records
    assert "t: 1 of 2 pairs seem to have their languages swapped, the first on line 2" in record.getMessage()


@pytest.mark.parametrize(("style", "expected"), [("old", 2), ("new", 1), (None, 0)])
def test_references_keep_their_tone_marks_and_are_warned_of(
    caplog: pytest.LogCaptureFixture, style: ToneMarks | None, expected: int
) -> None:
    references = ["anh khoẻ không", "hoà bình", "hòa bình", "quý"]
    with caplog.at_level(logging.WARNING):
        warn_of_references(Path("r.vi"), references, style)
    assert [record.getMessage() for record in caplog.records] == [
        f"r.vi: references are scored unchanged, but {expected} of 4 lines have Vietnamese tone marks in a different "
        f"style from the translations (tokenizer.tone_marks={style}), which may lower BLEU: rewrite them in that "
        "style, unless you need scores comparable with published ones."
    ] * bool(expected)


def test_a_line_with_two_kinds_of_change_is_one_line(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        warn_of_references(Path("r.vi"), [unicodedata.normalize("NFD", "một  hai")])
    assert "would change 1 of 1 lines (nfc 1, spaces 1)" in caplog.text


def test_sources_become_plain_text_and_references_stay(tmp_path: Path) -> None:
    (tmp_path / "t.en").write_text("It &apos;s a cat .\n", encoding="utf-8")
    (tmp_path / "t.vi").write_text("Một con mèo .\n", encoding="utf-8")
    pairs = read_references(str(tmp_path / "t"), Direction("en", "vi"), detokenize=True)
    assert pairs == (["It's a cat."], ["Một con mèo ."])


@pytest.mark.parametrize(("said", "expected"), [(None, True), (True, True), (False, False)])
def test_whether_bleu_is_over_tokens_is_said_or_seen(said: bool | None, expected: bool) -> None:
    assert is_tokenized(said, ["một , hai ."]) is expected
    assert is_tokenized(said, ["một, hai."]) is bool(said)


def test_tidy_references_are_no_warning(write: Callable[[list[str]], str], caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        read_references(write(["bảy con mèo", "một"]), Direction("en", "vi"))
    assert not caplog.records
