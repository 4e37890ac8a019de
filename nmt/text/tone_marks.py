"""Where Vietnamese syllables in oa, oe and uy carry their tone mark: hòa in the old style, hoà in the new."""

import itertools
import re
import unicodedata
from pathlib import Path
from typing import Literal

from nmt.text.compressed import uncompressed

ToneMarks = Literal["old", "new"]

# A syllable may also begin with its vowel, as in uỷ ban. After q, as in quý, the u belongs to the consonant.
_ONSETS = "b c ch d đ g gh gi h k kh l m n ng ngh nh p ph r s t th tr v x"
_TONES = "\u0300\u0301\u0309\u0303\u0323"


def _rimes() -> dict[str, str]:
    """The rime in the new style, by the rime in the old one, in every mix of capital and small letters."""
    pairs = {}
    for vowels, tone in itertools.product(("oa", "oe", "uy"), _TONES):
        for first, second in itertools.product(*((vowel, vowel.upper()) for vowel in vowels)):
            old, new = first + tone + second, first + second + tone
            pairs[unicodedata.normalize("NFC", old)] = unicodedata.normalize("NFC", new)
    return pairs


_NEW_BY_OLD = _rimes()
_OTHER = {"new": _NEW_BY_OLD, "old": {new: old for old, new in _NEW_BY_OLD.items()}}
"""The rimes of the other style, and what they become in this one."""


def _syllables(rimes: dict[str, str]) -> re.Pattern[str]:
    """Matches whole syllables, because both styles write hoàn, and other languages have words such as Chloé."""
    onset = "|".join(sorted(_ONSETS.split(), key=len, reverse=True))
    return re.compile(rf"(?<![^\W\d_])(?P<onset>(?i:{onset})?)(?P<rime>{'|'.join(rimes)})(?![^\W\d_])")


_PATTERNS = {style: _syllables(rimes) for style, rimes in _OTHER.items()}


def tone_marks_of(language: str, style: ToneMarks | None) -> ToneMarks | None:
    """The style for text in a language: none except for Vietnamese, because French has words such as Noé and loué."""
    return style if language == "vi" else None


def tone_marks_of_file(path: Path, style: ToneMarks | None) -> ToneMarks | None:
    """The style for a text file, whose extension is the code of its language."""
    return tone_marks_of(uncompressed(path).suffix.removeprefix("."), style)


def with_tone_marks(text: str, style: ToneMarks | None) -> str:
    """The NFC text with the tone marks of Vietnamese syllables in one style, or unchanged if the style is None."""
    if style is None or text.isascii():
        return text
    return _PATTERNS[style].sub(lambda match: match["onset"] + _OTHER[style][match["rime"]], text)


def tone_mark_styles(text: str) -> set[ToneMarks]:
    """The styles of the tone marks in an NFC text; empty if it has no syllable that the styles write differently."""
    styles: tuple[tuple[ToneMarks, ToneMarks], ...] = (("old", "new"), ("new", "old"))
    return {style for style, other in styles if not text.isascii() and _PATTERNS[other].search(text)}
