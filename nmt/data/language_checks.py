"""Finds lines in the wrong language, where one of the two is Vietnamese."""

import re
from collections.abc import Callable

from nmt.config.direction import Direction
from nmt.text import normalize

Check = Callable[[str, str], bool]
"""check(source, target) takes the two lines of a pair, unchanged; True means a defect."""

_VIETNAMESE = re.compile("[ăâđêôơưàáãèéìíòóõùúýĩũ\u1ea0-\u1ef9]", re.IGNORECASE)
# Letters of no other language, unlike é and õ, and frequent words whose letters are also those of other languages. "là"
# is missing, because it is French too.
_ONLY_VIETNAMESE = re.compile(
    "[ăđơư\u1ea0-\u1ef9]|"
    r"\b(?:tôi|không|ông|bà|cô|chú|dì|bác|có|và|này|nào|gì|cái|các|cùng|thì|mình|tên|viên|hôm|nên|chào|lúc)\b",
    re.IGNORECASE,
)


def swapped_check(direction: Direction) -> Check | None:
    """The check for sides in each other's language; None if neither language is Vietnamese."""
    if direction.target == "vi":
        return _swapped_to
    return _swapped_from if direction.source == "vi" else None


def foreign_check(direction: Direction) -> Callable[[str], bool] | None:
    """The check for a source line in the wrong language; None if neither language is Vietnamese."""
    if direction.source == "vi":
        return _is_long_and_not_vietnamese
    return _is_surely_vietnamese if direction.target == "vi" else None


def _is_vietnamese(line: str, letters: re.Pattern[str] = _VIETNAMESE) -> bool:
    """Whether a line has three or more words, of which at least a third contain one of these Vietnamese letters."""
    line = normalize(line)  # the letters are matched in NFC
    words = line.split() if letters.search(line) else []
    return len(words) > 2 and 3 * sum(bool(letters.search(word)) for word in words) >= len(words)


def _is_surely_vietnamese(line: str) -> bool:
    return _is_vietnamese(line, _ONLY_VIETNAMESE)


def _is_long_and_not_vietnamese(line: str) -> bool:
    """Whether a line has six or more words but no Vietnamese letter. Lines of only names or numbers are shorter."""
    line = normalize(line)
    return len(line.split()) > 5 and not _VIETNAMESE.search(line)


def _swapped_to(source: str, target: str) -> bool:
    return _is_vietnamese(source) and not _is_vietnamese(target)


def _swapped_from(source: str, target: str) -> bool:
    return _swapped_to(target, source)
