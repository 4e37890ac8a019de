"""What of a line is translated, what is copied, and how a line in capitals is read."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.config.direction import Direction
from nmt.data.corpus import read_pairs
from nmt.decoding.translatable import Translatable, UnknownLines, sentence_case, translatable, unknown_characters
from nmt.text.normalize import normalize
from nmt.text.tokenizer import Tokenizer, train_tokenizer

LINES = ["How old is Mai?", "Mai is old, and how old is Lan?", "https and www are words too: 1 2 3 4 5 6 7 8 9 0"]
TOKENIZER = Tokenizer(train_tokenizer(LINES, kind="bpe", size=300, character_coverage=1.0))


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    """The embedded corpus's."""
    pairs = read_pairs("sample:train", Direction("en", "vi"))
    return Tokenizer(train_tokenizer([*pairs.source, *pairs.target], kind="bpe", size=None, character_coverage=1.0))


@settings(deadline=None)
@given(st.text(alphabet="aB1. -)•😀👍🏽\u200d\ufe0f°✓/:@w", max_size=20))
def test_the_parts_are_the_line_and_the_text_has_letters(text: str) -> None:
    line = normalize(text)
    parts = translatable(line, TOKENIZER)
    assert parts.completed(parts.text).lower() == line.lower()
    assert not parts.text or any(map(str.isalpha, parts.text))
    assert parts.text == parts.text.strip()
    parts_of_text = translatable(parts.text, TOKENIZER)
    assert (parts_of_text.before, parts_of_text.after) == ("", "") or not parts.text


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
        "20 ㎡",
        "https://vi.wikipedia.org/wiki/Việt_Nam",
        "：https://example.org/。",
    ],
)
def test_met_nothing_to_translate(line: str) -> None:
    assert translatable(line, TOKENIZER) == Translatable(line, "", "")


@pytest.mark.parametrize(
    ("before", "text", "after"),
    [
        ("1. ", "How old is Lan?", ""),
        ("2.3. ", "How old is Lan?", ""),
        ("(4) ", "How old is Lan?", ""),
        ("b) ", "How old is Lan?", ""),
        ("B) ", "How old is Lan?", ""),
        ("1. ", "cats and dogs", ""),
        ("> ", "How old is Lan?", ""),
        ("- ", "5 cats", ""),
        ("- ", "How old is Lan?", ""),
        ("• 😀 ", "How old is Lan?", " 👍🏽"),
        ("", "How old is Lan?", " 👩\u200d🔬"),
        ("👨\u200d👩\u200d👧 ", "How old is Lan?", "\u2764\ufe0f\u200d🔥"),
        ("😀", "How old is Lan?", "😀😀"),
        ("1\ufe0f\u20e3 ", "How old is Lan?", ""),
        ("", "3 cats are here.", ""),
        ("", "1999. It was cold.", ""),
        ("", "A. Smith is here.", ""),
        ("", "3.5 million people", ""),
        ("", "How old? See https://example.org/", ""),
        ("", "It is 20°", ""),
        ("", "It is 20 ㎡", ""),
        ("", "㈱ Lan", ""),
        ("", "(I) went.", ""),
        ("", "(A) cat is here.", ""),
        ("", "> 5 apples", ""),
        ("• ", "+ 5 apples", ""),
    ],
)
def test_markers_and_emoji_around_the_words_are_copied(before: str, text: str, after: str) -> None:
    assert translatable(before + text + after, TOKENIZER) == Translatable(before, text, after)


@pytest.mark.parametrize("language", ["de", "fi", "tr"])
def test_a_number_with_a_period_is_no_marker_where_it_may_be_an_ordinal(language: str) -> None:
    tokenizer = TOKENIZER
    assert translatable("12. Oktober ist ein Tag", tokenizer, language).text == "12. Oktober ist ein Tag"
    assert translatable("• 2.3. Wie alt ist Lan?", tokenizer, language).before == "• "
    assert translatable("12) Oktober ist ein Tag", tokenizer, language).before == "12) "
    assert translatable("12.", tokenizer, language) == Translatable("12.", "", "")
    assert translatable("12. Oktober ist ein Tag", tokenizer, "en").before == "12. "


@pytest.mark.parametrize(
    "line",
    [
        "www.example.org是一个好网站",
        "https://example.org/は素晴らしい",
        "mai@example.org에",
        "请访问https://example.org/",
        "https://example.org/ดีมาก",
    ],
)
def test_a_sentence_beside_an_address_is_translated(line: str) -> None:
    assert translatable(line, TOKENIZER) == Translatable("", line, "")


# One step for each pair of characters would take days.
@pytest.mark.parametrize(
    "line",
    [
        "A" + "-" * 2**20 + "A BBBBB",
        "-" * 2**20 + "a b",
        "a@" * 2**19 + " b",
        "a-" * 2**19 + " b",
        "a@" + "a-" * 2**19 + " b",
        "1." * 2**19 + "1 b",
        "." * 2**20 + "a b",
        "- " * 2**15 + "a b",
    ],
    ids=["word", "dashes", "mails", "hyphens", "domain", "numbers", "periods", "markers"],
)
def test_a_long_line_is_read_in_time_proportional_to_its_length(line: str) -> None:
    assert translatable(line, TOKENIZER).text


def test_met_all_capitals(tokenizer: Tokenizer) -> None:
    parts = translatable("1. HOW OLD IS MAI?", tokenizer)
    assert parts == Translatable("1. ", "How old is Mai?", "", capitals=True)
    assert parts.completed("Mai bao nhiêu tuổi?") == "1. MAI BAO NHIÊU TUỔI?"


@pytest.mark.parametrize(
    "line",
    [
        "NATO",
        "A",
        "I.",
        "OK",
        "How old is MAI?",
        "Ở ĐÂY có ai?",
        "나는 TV를 봤다",
        "我 喜欢 IBM 公司",
        "ผม ชอบ IBM มาก",
        "क A",
        "NATO WHO क",
        "OK https://EXAMPLE.ORG/",
    ],
)
def test_a_short_word_in_capitals_and_a_line_with_other_letters_stay(tokenizer: Tokenizer, line: str) -> None:
    assert translatable(line, tokenizer) == Translatable("", line, "")


def test_words_mostly_get_the_capitals_that_they_had_in_training(tokenizer: Tokenizer) -> None:
    lines = read_pairs("sample:test", Direction("en", "vi")).source
    right = sum(sentence_case(line.upper(), tokenizer) == line for line in lines)
    lower = sum(line.lower()[:1].upper() + line.lower()[1:] == line for line in lines)
    assert lower < 0.8 * len(lines) < right
    assert sentence_case("HOW OLD IS HE? I SEE MAI IN HANOI.", tokenizer) == "How old is he? I see Mai in Hanoi."
    assert sentence_case("HOW OLD IS HE? - HOW OLD IS MAI?", tokenizer) == "How old is he? - How old is Mai?"


def test_a_form_that_never_occurred_is_not_used() -> None:
    only_capitals = Tokenizer(
        train_tokenizer([line.upper() for line in LINES], kind="bpe", size=300, character_coverage=1.0)
    )
    assert translatable("HOW OLD IS MAI?", only_capitals) == Translatable("", "HOW OLD IS MAI?", "")
    only_lower = Tokenizer(
        train_tokenizer([line.lower() for line in LINES], kind="bpe", size=300, character_coverage=1.0)
    )
    assert translatable("IS MAI OLD?", only_lower).text == "IS mai old?"


def test_unknown_characters_are_those_without_a_piece() -> None:
    tokenizer = TOKENIZER
    assert unknown_characters("How old is Mai?", tokenizer) == ""
    assert unknown_characters("北 How 京 is 北?", tokenizer) == "北京"


def test_the_warning_counts_lines_and_shows_the_first() -> None:
    unknown = UnknownLines()
    for number, characters in enumerate(["", "北京", "", "京"], start=1):
        unknown.note(number, characters)
    assert unknown.warning == (
        "2 lines contain characters that the model never or hardly ever saw in training, first in line 2: '北京'"
    )
