"""Invisible characters are dropped, except those that a script needs."""

import logging
import time
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.scoring.references import warn_of_references
from nmt.text import changes, normalize
from nmt.text.invisible import without_invisible

NEVER_NEEDED = "\u00ad\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060\u2061\u2064\u2066\u2069\u206f\ufeff"
NEVER_NEEDED += "\ufff9\ufffa\ufffb\U0001d173\U0001d17a\U000e0001"
SOMETIMES = "\u180e\u200b\u200c\u200d\U000e0067\U000e007f\u034f\u115f\u1160\u3164\uffa0\u17b4\u17b5"
SCRIPTS = "aé字 \t\u2581\u0301\u0338\u05b0\u094d\u0e38\ufe0fकشกខ\u1820😀❤\u2329\U0001f3f4א한\u1112\u1161\u11abㄱﾡ"
TEXT = st.text(f"{NEVER_NEEDED}{SOMETIMES}{SCRIPTS}", max_size=14)


@given(TEXT)
@settings(max_examples=400, deadline=None)
def test_nothing_else_changes_and_twice_is_once(text: str) -> None:
    hidden = set(NEVER_NEEDED + SOMETIMES)
    visible = "".join(char for char in text if char not in hidden)
    kept = without_invisible(text)
    assert "".join(char for char in kept if char not in hidden) == visible
    assert without_invisible(kept) == kept
    assert not set(kept) & set(NEVER_NEEDED)
    assert normalize(normalize(text)) == normalize(text)
    assert ("invisible" in changes(text)) == (kept != text)
    assert (changes(text) == ()) == (normalize(text) == text)


@given(st.text(f"{NEVER_NEEDED}{SOMETIMES} \t", max_size=10))
@settings(deadline=None)
def test_a_line_of_nothing_else_is_empty(text: str) -> None:
    assert normalize(text) == ""


@given(st.text(f"abcđệ .{NEVER_NEEDED}{SOMETIMES}", max_size=20))
@settings(deadline=None)
def test_latin_text_needs_none(text: str) -> None:
    hidden = set(NEVER_NEEDED + SOMETIMES)
    assert without_invisible(text) == "".join(char for char in text if char not in hidden)


@pytest.mark.parametrize(
    "text",
    [
        "می\u200cخواهم",  # Persian: a prefix that is written apart
        "ه\u200d",  # Arabic: the abbreviation of Hijri
        "क्\u200dष",  # Devanagari: a half form
        "क्\u200cष",  # and a visible virama
        "ত্\u200c",  # Bengali: at the end of a word
        "👩\u200d👩\u200d👧 👩🏽\u200d🚀 ❤️\u200d🔥 🏳️\u200d🌈",
        "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",  # the flag of England
        "ភាសា\u200bខ្មែរ",  # Khmer: a space between words
        "ᠬᠠᠷ\u180eᠠ",  # Mongolian
        "ＡＢ 1️⃣",  # variation selectors are not ours to judge
        "\u1112\u1160\u11ab ㅎㅤㄴ ﾾ\uffa0ﾤ",  # Hangul: a syllable without a vowel
        "א\u05b7\u034f\u05b4",  # Hebrew: the order of two points
        "ក\u17b4ខ",  # Khmer: a vowel that is not written
    ],
)
def test_what_a_script_needs_stays(text: str) -> None:
    assert without_invisible(text) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\u200bHow old is Mai?", "How old is Mai?"),
        ("Donau\u00addampf\u00adschiff", "Donaudampfschiff"),
        ("\u202aabc\u202c \u2067\u05d0\u2069", "abc א"),
        ("e\ufeff\u0301", "é"),
        ("a \u200d b", "a b"),
        ("a\u200cb😀\u200d c", "ab😀 c"),
        ("中\u200b文", "中文"),
        ("\u3164", ""),
        ("한\u3164 \u115f국\uffa0.", "한 국."),
        ("a\u3164b\u1160c\u034fd\u17b4e", "abcde"),
        ("\ufff9漢字\ufffaかんじ\ufffb \U0001d173x\U0001d174", "漢字かんじ x"),
        ("🏴\U000e0001", "🏴"),  # U+E0001 is no tag of a flag
        ("x\U000e0041\U000e0042", "x"),  # text in tags, which a reader does not see
    ],
)
def test_examples(text: str, expected: str) -> None:
    assert normalize(text) == expected
    assert "invisible" in changes(text)


@pytest.mark.parametrize("name", ["_JOINED", "_UNSPACED", "_EMOJI", "_HANGUL", "_KHMER"])
def test_composition_leaves_a_letter_in_its_script(name: str) -> None:
    """Otherwise a second normalization could drop what the first one kept."""
    from nmt.text import invisible

    letters = getattr(invisible, name)
    for char in map(chr, range(0x2000, 0x30000)):
        if letters.match(char):
            assert letters.match(unicodedata.normalize("NFC", char)[0])


def test_a_line_of_a_million_joiners_takes_linear_time() -> None:
    seconds = []
    for times in (50_000, 400_000):
        began = time.process_time()
        assert without_invisible("क" + "\u200d\u0301" * times) == "क" + "\u200d\u0301" * times
        seconds.append(time.process_time() - began)
    assert seconds[1] < 40 * seconds[0] + 1


def test_references_keep_them_and_are_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        warn_of_references(Path("r.vi"), ["a\u200bb", "c"])
    assert "references are scored unchanged, but normalization would change 1 of 2 lines (invisible 1)" in caplog.text
