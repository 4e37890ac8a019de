"""Cutting a line that is too long for a model into parts that are not."""

import re
from collections.abc import Callable

_SENTENCE_END = re.compile(r"[.!?…][\"')\]”’»]* ")
_SPACE = re.compile(" ")


def split_line(text: str, length: Callable[[str], int], longest: int) -> list[str]:
    """Consecutive parts of `text` with length(part) <= longest, without the spaces between them.

    A part that is too long is cut at the sentence end nearest to its middle, if there is one in its middle half, else
    at the nearest space there, else between two characters. A single character is never cut.
    """
    if length(text) <= longest or len(text) == 1:
        return [text]
    cut = _cut(text)
    parts = (text[:cut].strip(), text[cut:].strip())
    return [segment for part in parts if part for segment in split_line(part, length, longest)]


def _cut(text: str) -> int:
    middle, quarter = len(text) // 2, len(text) // 4
    for border in (_SENTENCE_END, _SPACE):
        cuts = [match.end() for match in border.finditer(text, quarter, len(text) - quarter)]
        if cuts:
            return min(cuts, key=lambda cut: abs(cut - middle))
    return middle
