"""Patterns of punctuation, HTML entities, addresses and capitals."""

import re

_CLOSERS = r"[\"')\]”’»」』）]*"
SENTENCE_END = rf"[.!?…؟۔।]{_CLOSERS}"
"""A regular expression for the punctuation at the end of a sentence, with the quotes and brackets that it closes.

It ends a sentence only before a space or at the end of the text, so not in 3.14.
"""
UNSPACED_END = rf"[。！？]{_CLOSERS}"
"""The same for scripts without spaces between sentences: a sentence ends wherever it occurs."""
HTML_ENTITY = r"&(?:\w+|#\d+|#[xX][\da-fA-F]+);"
"""A regular expression for a character in HTML's spelling, such as &quot; or &#x27;."""

# Letters of alphabets that put spaces between words. Text in other scripts can follow an address without a space.
_LETTERS = r"0-9A-Za-z_\u00c0-\u058f\u1e00-\u1fff"
# Each alternative begins only where a word, or for mail a run of its characters, begins; so the search takes time in
# proportion to the length of the text.
ADDRESS = re.compile(
    rf"(?<![{_LETTERS}])"
    rf"(?:(?:https?|ftp)://|mailto:|www\.|(?<![.+-])[{_LETTERS}.+-]+@[{_LETTERS}][{_LETTERS}-]*\.[{_LETTERS}])"
    r"[!-~\u00a1-\u058f\u1e00-\u1fff]*",
    re.IGNORECASE,
)
"""Web and mail addresses."""


def all_capitals(text: str) -> bool:
    """Whether the text has letters, and all of them are capitals.

    str.isupper would ignore the letters of scripts without capitals, and call '나는 TV를 봤다' upper case.
    """
    letters = [character for character in text if character.isalpha()]
    return bool(letters) and all(map(str.isupper, letters))
