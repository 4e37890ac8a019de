"""Patterns of punctuation, HTML entities and capitals."""

_CLOSERS = r"[\"')\]”’»」』）]*"
SENTENCE_END = rf"[.!?…؟۔।]{_CLOSERS}"
"""A regular expression for the punctuation at the end of a sentence, with the quotes and brackets that it closes.

It ends a sentence only before a space or at the end of the text, so not in 3.14.
"""
UNSPACED_END = rf"[。！？]{_CLOSERS}"
"""The same for scripts without spaces between sentences: a sentence ends wherever it occurs."""
HTML_ENTITY = r"&(?:\w+|#\d+|#[xX][\da-fA-F]+);"
"""A regular expression for a character in HTML's spelling, such as &quot; or &#x27;."""


def all_capitals(text: str) -> bool:
    """Whether the text has letters, and all of them are capitals.

    str.isupper would ignore the letters of scripts without capitals, and call '나는 TV를 봤다' upper case.
    """
    letters = [character for character in text if character.isalpha()]
    return bool(letters) and all(map(str.isupper, letters))
