"""A dictionary that a model reads: rare words of the source are replaced by their translation, which it copies.

After Song et al. (2019) and the variant "replace" of Dinu et al. (2019). "The soup is hot." becomes "The súp is hot."
"""

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from nmt.errors import Mistake
from nmt.text.lines import iter_lines
from nmt.text.normalize import normalize

# Letters, with hyphens and apostrophes between them.
_WORD = r"[^\W\d_]+(?:[-'’][^\W\d_]+)*"
# Not a part of a longer word, an identifier, a path or an address: soup's, soup_2, soup.py, a/soup, ?dish=soup.
_WHOLE_WORD = re.compile(rf"(?<![\w@./\\#&=?%:~+-])(?<!\w['’]){_WORD}(?![\w@/\\=%~+-]|['’]\w|[.:]\w|://)")
_KEY = re.compile(rf"{_WORD}(?: {_WORD})*")


class Replacement(NamedTuple):
    """A part of a text, from `start` to `end`, and the translation that replaces it."""

    start: int
    end: int
    translation: str


class Dictionary:
    """Source words and phrases with the translations that a model reads in their place.

    A word or phrase in small letters also stands for itself with a capital at the beginning of a text, and its
    translation then begins with a capital. Otherwise capitals must agree, so that Baker remains a name. Of several
    phrases that begin with the same word, the longest is replaced. Parts of longer words, of identifiers and of
    addresses are left as they are.
    """

    def __init__(self, translations: Mapping[str, str]) -> None:
        self.translations = dict(translations)
        self._most_words = max((key.count(" ") + 1 for key in self.translations), default=0)

    @classmethod
    def load(cls, path: Path) -> "Dictionary":
        """Reads a file with a word or phrase, a tab and a translation in each line.

        Raises Mistake, with the number of the line, for a line of any other form and a repeated word.
        """
        lines: dict[str, int] = {}
        translations: dict[str, str] = {}
        for number, line in enumerate(iter_lines(path), start=1):
            key, *rest = map(normalize, line.split("\t"))
            if len(rest) != 1 or not key or not rest[0]:
                raise Mistake(f"{path}, line {number}: expected a word or phrase, a tab and its translation.")
            if not _KEY.fullmatch(key):
                raise Mistake(
                    f"{path}, line {number}: '{key}' is not a word or a phrase of words; use letters, hyphens and "
                    "apostrophes, and single spaces between words."
                )
            if key in lines:
                raise Mistake(
                    f"{path}, line {number}: '{key}' is already in line {lines[key]}; keep one translation of it."
                )
            lines[key], translations[key] = number, rest[0]
        return cls(translations)

    def __bool__(self) -> bool:
        return bool(self.translations)

    def __or__(self, other: "Dictionary") -> "Dictionary":
        """The words of both; those of `other` win."""
        return Dictionary({**self.translations, **other.translations})

    def table(self) -> str:
        """The lines of a file that `load` reads as this dictionary."""
        return "".join(f"{key}\t{translation}\n" for key, translation in self.translations.items())

    @property
    def digest(self) -> str:
        """The SHA-256 of `table`."""
        return hashlib.sha256(self.table().encode()).hexdigest()

    def replaced(self, text: str) -> str:
        """The normalized text, with its words and phrases in the dictionary replaced by their translations."""
        parts, copied = [], 0
        for start, end, translation in self.replacements(text):
            parts += [text[copied:start], translation]
            copied = end
        return "".join([*parts, text[copied:]])

    def removed(self, text: str) -> str:
        """The normalized text with spaces instead of its words and phrases in the dictionary."""
        parts, copied = [], 0
        for start, end, _ in self.replacements(text):
            parts += [text[copied:start], " "]
            copied = end
        return "".join([*parts, text[copied:]])

    def found(self, text: str) -> list[tuple[str, str]]:
        """The words and phrases of a normalized text that are replaced, each once, with their translations."""
        pairs = ((text[start:end], translation) for start, end, translation in self.replacements(text))
        return list(dict.fromkeys(pairs))

    def replacements(self, text: str) -> list[Replacement]:
        """What is replaced in a normalized text, in order."""
        if not self.translations:
            return []
        spans = [match.span() for match in _WHOLE_WORD.finditer(text)]
        beginning = next((index for index, character in enumerate(text) if character.isalnum()), 0)
        replacements, index = list[Replacement](), 0
        while index < len(spans):
            start = spans[index][0]
            used = 1
            for words in range(min(self._most_words, len(spans) - index), 0, -1):
                end = spans[index + words - 1][1]
                translation = self._translation(text[start:end], begins=start == beginning)
                if translation is not None:
                    replacements.append(Replacement(start, end, translation))
                    used = words
                    break
            index += used
        return replacements

    def _translation(self, phrase: str, *, begins: bool) -> str | None:
        """What replaces a phrase; `begins` says whether it is at the beginning of the text."""
        translation = self.translations.get(phrase)
        if translation is None and begins:
            translation = self.translations.get(phrase[0].lower() + phrase[1:])
            return None if translation is None else translation[0].upper() + translation[1:]
        return translation


NO_DICTIONARY = Dictionary({})
