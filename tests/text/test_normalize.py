import random
import sys
import unicodedata

import pytest

from nmt.text import changed_lines, changes, normalize
from nmt.text.normalize import without_punctuation

ODD = [
    *"\t\r\n\x00\x0b\x0c\x1c\x7f\x85\xa0\u2003\u2028\u2029\u3000\ufeff\u2581\u0301\u0323 ",
    "e",
    "â",
    "ệ",
    "\u2001",
    "\u212b",
]


def odd_texts() -> list[str]:
    draw = random.Random(3)
    return ["".join(draw.choices(ODD, k=draw.randrange(8))) for _ in range(2000)]


def test_normalization_is_idempotent():
    for text in odd_texts():
        assert normalize(normalize(text)) == normalize(text)


def test_kinds_of_change_are_reported_if_and_only_if_the_line_changes():
    for text in odd_texts():
        assert (changes(text) == ()) == (normalize(text) == text)


def test_every_unicode_space_and_control_character_becomes_one_plain_space():
    for char in map(chr, range(sys.maxunicode + 1)):
        if unicodedata.category(char) in ("Cc", "Zs", "Zl", "Zp"):
            assert normalize(f"a{char}b") == "a b"


def test_other_characters_are_composed_and_otherwise_kept():
    for char in map(chr, range(0x20, 0x2000)):
        if (
            unicodedata.category(char) not in ("Cc", "Zs")
            and char not in "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e"
        ):
            assert normalize(f"a{char}b") == unicodedata.normalize("NFC", f"a{char}b")


@pytest.mark.parametrize(
    ("text", "expected", "kinds"),
    [
        ("Tiếng Việt", "Tiếng Việt", ()),
        ("Tie\u0302\u0301ng Vie\u0323\u0302t", "Tiếng Việt", ("nfc",)),
        ("a\tb", "a b", ("control",)),
        ("\ufeffa", "a", ("invisible",)),
        ("a\u00a0b", "a b", ("spaces",)),
        (" a  b ", "a b", ("spaces",)),
        ("a\u2581b", "a_b", ("underline",)),
        ("½ … ﬁ", "½ … ﬁ", ()),
        ("", "", ()),
    ],
)
def test_examples(text, expected, kinds):
    assert normalize(text) == expected
    assert changes(text) == kinds


def test_a_line_with_two_kinds_of_change_counts_under_both():
    assert changed_lines(["e\u0301\ta", "b\tc", "d"]) == (2, "control 2, nfc 1")


def test_copies_in_other_case_punctuation_and_spaces_are_equal_without_punctuation():
    for text in odd_texts():
        bare = without_punctuation(f"a{text}")
        assert without_punctuation(bare) == without_punctuation(f"  “A{text}” ... ") == bare


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        ("“Hòa”, 3 + 5 %!", "hòa3+5"),
        ("HOÀ", "hoà"),
        ("हिन्दी है।", "हिन्दीहै"),  # the vowel signs are marks, and distinguish words
        ("...", "..."),
        ("", ""),
    ],
)
def test_without_punctuation_by_hand(text: str, bare: str) -> None:
    assert without_punctuation(text) == bare
