"""Cuts lines that are too long for a model into parts."""

import re
from collections.abc import Callable

from nmt.text.patterns import SENTENCE_END, UNSPACED_END

_SENTENCE_END = re.compile(f"{SENTENCE_END} |{UNSPACED_END}")
_SPACE = re.compile(" ")


def split_line(text: str, ids: list[int], encode: Callable[[str], list[int]], longest: int) -> list[list[int]]:
    """The ids of consecutive parts of `text` with at most `longest` ids each; [ids] if the line fits.

    `ids` is encode(text). A line that is too long is cut in two, and each part is encoded and, if it is still too long,
    cut again. The cut is at the sentence end nearest to the middle if the middle half of the line contains one, else at
    the space nearest to the middle if the middle half contains one, else between two characters. Spaces at the cuts are
    dropped. A single character is never cut.
    """
    if len(ids) <= longest or len(text) == 1:
        return [ids]
    cut = _cut(text)
    parts = (text[:cut].strip(), text[cut:].strip())
    return [segment for part in parts if part for segment in split_line(part, encode(part), encode, longest)]


def _cut(text: str) -> int:
    middle, quarter = len(text) // 2, len(text) // 4
    for border in (_SENTENCE_END, _SPACE):
        cuts = [match.end() for match in border.finditer(text, quarter, len(text) - quarter)]
        if cuts:
            return min(cuts, key=lambda cut: abs(cut - middle))
    return middle
