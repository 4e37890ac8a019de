"""Normalizes lines of text to NFC with single plain spaces, and counts the changes that this makes."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable

from nmt.text.invisible import without_invisible

# \s matches every Unicode space and line separator, including tab and NEL; the ranges add the other control characters.
_BLANKS = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_UNTIDY_SPACES = re.compile(r"[^\S \x00-\x1f\x7f-\x9f]| {2}|^ | \Z")
WORD_START = "\u2581"
"""How SentencePiece writes a space, so that decoding turns a literal U+2581 into a space."""


def normalize(text: str) -> str:
    """The line in NFC with single plain spaces.

    Control characters, tabs, no-break spaces and Unicode line separators become spaces; runs of spaces become one
    space; spaces at either end are removed; invisible characters that the script does not need are dropped; a literal
    U+2581 becomes an underscore. Idempotent: normalize(normalize(text)) == normalize(text).
    """
    # Compose last: dropping an invisible character can bring a letter and its accent together.
    text = without_invisible(text).replace(WORD_START, "_")
    return unicodedata.normalize("NFC", _BLANKS.sub(" ", text).strip(" "))


def without_punctuation(text: str) -> str:
    """The text in lower case without punctuation and spaces; the text itself if it consists of them.

    Equal for two copies of a sentence that differ only in case, punctuation or spaces. Symbols such as + are kept.
    """
    return text.casefold().translate(_PUNCTUATION) or text


class _Punctuation(dict[int, int | None]):
    """A table for str.translate that drops punctuation, spaces and control characters; entries are made when needed.

    Accents without a letter count as punctuation, because ` is used as a quotation mark.
    """

    def __missing__(self, character: int) -> int | None:
        category = unicodedata.category(chr(character))
        kept = None if category[0] in "PZC" or category == "Sk" else character
        self[character] = kept
        return kept


_PUNCTUATION = _Punctuation()


def changes(text: str) -> tuple[str, ...]:
    """The kinds of change that `normalize` makes to the line; empty if and only if it makes none.

    'nfc': the line is not in NFC; 'control': it contains control characters; 'invisible': it contains invisible
    characters that its script does not need; 'spaces': it contains spaces other than single plain ones between words;
    'underline': it contains a literal U+2581.
    """
    present = {
        "nfc": not unicodedata.is_normalized("NFC", text),
        "control": _CONTROL.search(text) is not None,
        "invisible": without_invisible(text) != text,
        "spaces": _UNTIDY_SPACES.search(text) is not None,
        "underline": WORD_START in text,
    }
    return tuple(kind for kind, is_present in present.items() if is_present)


def changed_lines(texts: Iterable[str]) -> tuple[int, str]:
    """The number of lines that `normalize` changes, and the number for each kind of change, such as 'control 2, nfc 1'.

    A line with two kinds is counted under both.
    """
    kinds_of_lines = [kinds for kinds in map(changes, texts) if kinds]
    counts = Counter(kind for kinds in kinds_of_lines for kind in kinds)
    return len(kinds_of_lines), ", ".join(f"{kind} {number}" for kind, number in sorted(counts.items()))
