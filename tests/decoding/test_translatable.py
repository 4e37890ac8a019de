"""What of a line is translated, what is copied, and how a line in capitals is read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.config.direction import Direction
from nmt.data.corpus import read_pairs
from nmt.decoding.translatable import Translatable, UnknownLines, sentence_case, translatable, unknown_characters
from nmt.text.normalize import normalize
from nmt.text.tokenizer import Tokenizer, train_tokenizer

LINES = ["How old is Mai?", "Mai is old, and how old is Lan?", "https and www are words too: 1 2 3 4 5 6 7 8 9 0"]
MODEL = train_tokenizer(LINES, kind="bpe", size=300)


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    """The embedded corpus's."""
    pairs = read_pairs("sample:train", Direction("en", "vi"))
    return Tokenizer(train_tokenizer([*pairs.source, *pairs.target], kind="bpe", size=None))


@given(st.text(alphabet="aB1. -)•😀👍🏽\u200d\ufe0f°✓/:@w", max_size=20))
def test_the_parts_are_the_line_and_the_text_has_letters(text: str) -> None:
    line, tokenizer = normalize(text), Tokenizer(MODEL)
    found = translatable(line, tokenizer)
    assert found.completed(found.text).lower() == line.lower()
    assert not found.text or any(map(str.isalpha, found.text))
    assert found.text == found.text.strip()
    again = translatable(found.text, tokenizer)
    assert (again.before, again.after) == ("", "") or not found.text


@pytest.mark.parametrize(
    "line",
    [
        "123",
        "😀",
        "👍🏽 👨‍👩‍👧",
        "https://example.org/",
        "1.",
        "- …",
        "3.5 %",
        "mai@example.org",
        "(www.example.org)",
        "12:30–13:45",
    ],
)
def test_met_nothing_to_translate(line: str) -> None:
    assert translatable(line, Tokenizer(MODEL)) == Translatable(line, "", "")


@pytest.mark.parametrize(
    ("before", "text", "after"),
    [
        ("1. ", "How old is Lan?", ""),
        ("2.3. ", "How old is Lan?", ""),
        ("(4) ", "How old is Lan?", ""),
        ("b) ", "How old is Lan?", ""),
        ("- ", "How old is Lan?", ""),
        ("• 😀 ", "How old is Lan?", " 👍🏽"),
        ("😀", "How old is Lan?", "😀😀"),
        ("1\ufe0f\u20e3 ", "How old is Lan?", ""),
        ("", "3 cats are here.", ""),
        ("", "1999. It was cold.", ""),
        ("", "A. Smith is here.", ""),
        ("", "3.5 million people", ""),
        ("", "How old? See https://example.org/", ""),
        ("", "It is 20°", ""),
    ],
)
def test_markers_and_emoji_around_the_words_are_copied(before: str, text: str, after: str) -> None:
    assert translatable(before + text + after, Tokenizer(MODEL)) == Translatable(before, text, after)


def test_met_all_capitals(tokenizer: Tokenizer) -> None:
    found = translatable("1. HOW OLD IS MAI?", tokenizer)
    assert found == Translatable("1. ", "How old is Mai?", "", capitals=True)
    assert found.completed("Mai bao nhiêu tuổi?") == "1. MAI BAO NHIÊU TUỔI?"


@pytest.mark.parametrize("line", ["NATO", "A", "I.", "OK", "How old is MAI?", "Ở ĐÂY có ai?"])
def test_a_short_word_in_capitals_and_a_line_with_other_letters_stay(tokenizer: Tokenizer, line: str) -> None:
    assert translatable(line, tokenizer) == Translatable("", line, "")


def test_words_mostly_get_the_capitals_that_they_had_in_training(tokenizer: Tokenizer) -> None:
    lines = read_pairs("sample:test", Direction("en", "vi")).source
    right = sum(sentence_case(line.upper(), tokenizer) == line for line in lines)
    lower = sum(line.lower()[:1].upper() + line.lower()[1:] == line for line in lines)
    assert lower < 0.8 * len(lines) < right
    assert sentence_case("HOW OLD IS HE? I SEE MAI IN HANOI.", tokenizer) == "How old is he? I see Mai in Hanoi."


def test_a_form_that_never_occurred_is_not_used() -> None:
    only_capitals = Tokenizer(train_tokenizer([line.upper() for line in LINES], kind="bpe", size=300))
    assert translatable("HOW OLD IS MAI?", only_capitals) == Translatable("", "HOW OLD IS MAI?", "")
    only_lower = Tokenizer(train_tokenizer([line.lower() for line in LINES], kind="bpe", size=300))
    assert translatable("IS MAI OLD?", only_lower).text == "IS mai old?"


def test_unknown_characters_are_those_without_a_piece() -> None:
    tokenizer = Tokenizer(MODEL)
    assert unknown_characters("How old is Mai?", tokenizer) == ""
    assert unknown_characters("北 How 京 is 北?", tokenizer) == "北京"


def test_the_warning_counts_lines_and_shows_the_first() -> None:
    unknown = UnknownLines()
    for number, characters in enumerate(["", "北京", "", "京"], start=1):
        unknown.note(number, characters)
    assert unknown.warning == (
        "2 lines contain characters that the model never or hardly ever saw in training, first in line 2: '北京'"
    )
