"""A dictionary for a model: words of the source are replaced by their translations, which the model copies.

After Song et al. (2019) and the variant "replace" of Dinu et al. (2019). "The soup is hot." becomes "The súp is hot."
"""

import hashlib
import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from nmt.errors import Mistake
from nmt.text.lines import iter_lines
from nmt.text.normalize import normalize
from nmt.text.patterns import ADDRESS

# Letters, with hyphens and apostrophes between them.
_WORD = r"[^\W\d_]+(?:[-'’][^\W\d_]+)*"
# Not a part of a longer word, an identifier, a path or a tag: soup's, soup_2, soup.py, a/soup, <soup>, ?dish=soup.
_WHOLE_WORD = re.compile(
    rf"(?<![\w@/\\#&=?%:~+<{{$])(?<!(?<!\.)\.)(?<!(?<!-)-)(?<!\w['’]){_WORD}"
    r"(?![\w@/\\=%~+>}]|-(?!-)|['’]\w|[.:?&#]\w|://)"
)
_KEY = re.compile(rf"{_WORD}(?: {_WORD})*")
_NOT_A_KEY = (
    "is not a word or phrase of letters, with hyphens and apostrophes only inside words and without combining marks"
)


class Replacement(NamedTuple):
    """A part of a text, from `start` to `end`, and the translation that replaces it."""

    start: int
    end: int
    translation: str


class Dictionary:
    """Source words and phrases with the translations that replace them.

    An entry in lower case also matches a text that begins with it and a capital; its translation then begins with a
    capital. Otherwise capitals must agree, so that names inside a text remain. Of several phrases that begin with the
    same word, the longest is replaced. Both apostrophes are equal. Parts of longer words, of identifiers and of
    addresses are left as they are.
    """

    def __init__(self, translations: Mapping[str, str]) -> None:
        self.translations = {_with_plain_apostrophes(key): value for key, value in translations.items()}
        lengths: dict[str, set[int]] = defaultdict(set)
        for key in self.translations:
            first, *others = key.split(" ")
            lengths[first].add(1 + len(others))
        # The numbers of words of the phrases that begin with a word, the longest first.
        self._lengths = {first: sorted(numbers, reverse=True) for first, numbers in lengths.items()}

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
                raise Mistake(f"{path}, line {number}: '{key}' {_NOT_A_KEY}; remove the line.")
            key = _with_plain_apostrophes(key)
            if key in lines:
                raise Mistake(
                    f"{path}, line {number}: '{key}' is already in line {lines[key]}; keep one translation of it."
                )
            lines[key], translations[key] = number, rest[0]
        return cls(translations)

    @classmethod
    def from_mapping(cls, translations: Any) -> "Dictionary":
        """Normalizes the words and translations of a Python mapping.

        Raises Mistake for anything but a mapping of words and phrases to translations, and for a repeated word.
        """
        if not isinstance(translations, Mapping):
            kind = type(translations).__name__
            raise Mistake(
                f"dictionary is of type {kind}; pass the name of a file, or a dict of words and translations."
            )
        given: dict[str, str] = {}
        normalized: dict[str, str] = {}
        for word, translation in translations.items():
            texts = [normalize(text) if isinstance(text, str) else "" for text in (word, translation)]
            if not all(texts):
                raise Mistake(
                    f"dictionary has {word!r}: {translation!r}; pass words and translations that are strings with text."
                )
            if not _KEY.fullmatch(texts[0]):
                raise Mistake(f"dictionary has {word!r}, which {_NOT_A_KEY}; remove it.")
            if any("\ud800" <= character <= "\udfff" for character in texts[1]):
                raise Mistake(f"dictionary[{word!r}] contains an unpaired surrogate; pass valid Unicode.")
            key = _with_plain_apostrophes(texts[0])
            if key in given:
                raise Mistake(f"dictionary has {given[key]!r} and {word!r}, the same word; keep one of them.")
            given[key], normalized[key] = word, texts[1]
        return cls(normalized)

    def __bool__(self) -> bool:
        return bool(self.translations)

    def __or__(self, other: "Dictionary") -> "Dictionary":
        """The words of both; those of `other` take precedence."""
        return Dictionary({**self.translations, **other.translations}) if other else self

    def respelled(self, source: Callable[[str], str], target: Callable[[str], str]) -> "Dictionary":
        """The dictionary with other spellings of its words, by `source`, and of its translations, by `target`."""
        return Dictionary({source(key): target(translation) for key, translation in self.translations.items()})

    def table(self) -> str:
        """The lines of a file that `load` reads as this dictionary."""
        return "".join(f"{key}\t{translation}\n" for key, translation in sorted(self.translations.items()))

    @property
    def digest(self) -> str:
        """The SHA-256 of `table`."""
        return hashlib.sha256(self.table().encode()).hexdigest()

    def replaced(self, text: str) -> str:
        """The normalized text, with the words and phrases of the dictionary replaced by their translations."""
        return self._rewritten(text, lambda translation: translation)

    def removed(self, text: str) -> str:
        """The normalized text with spaces in place of the words and phrases of the dictionary."""
        return self._rewritten(text, lambda _: " ")

    def _rewritten(self, text: str, written: Callable[[str], str]) -> str:
        """The text with `written(translation)` in place of each word or phrase that has a translation."""
        parts, copied = [], 0
        for start, end, translation in self.replacements(text):
            parts += [text[copied:start], written(translation)]
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
        spans = whole_words(text)
        beginning = next((index for index, character in enumerate(text) if character.isalpha()), 0)
        replacements, index = list[Replacement](), 0
        while index < len(spans):
            start, end = spans[index]
            first = _with_plain_apostrophes(text[start:end])
            forms = [first]
            if start == beginning:
                forms.append(first[0].lower() + first[1:])
            used = 1
            lengths = {number for form in forms for number in self._lengths.get(form, ())}
            for number in sorted(lengths, reverse=True):
                end = spans[min(index + number, len(spans)) - 1][1]
                translation = self._translation(_with_plain_apostrophes(text[start:end]), begins=start == beginning)
                if translation is not None:
                    replacements.append(Replacement(start, end, translation))
                    used = number
                    break
            index += used
        return replacements

    def _translation(self, phrase: str, *, begins: bool) -> str | None:
        """What replaces a phrase; `begins` says whether the text begins with it."""
        translation = self.translations.get(phrase)
        if translation is None and begins:
            translation = self.translations.get(phrase[0].lower() + phrase[1:])
            return None if translation is None else translation[0].upper() + translation[1:]
        return translation


NO_DICTIONARY = Dictionary({})


def whole_words(text: str) -> list[tuple[int, int]]:
    """Where the words of a normalized text begin and end, except for parts of identifiers, paths and addresses."""
    # A word next to @ is not whole, so nothing in an address matches.
    plain = ADDRESS.sub(lambda address: "@" * len(address[0]), text)
    return [
        (start, end)
        for start, end in (match.span() for match in _WHOLE_WORD.finditer(plain))
        if not _is_mark(text[start - 1 : start]) and not _is_mark(text[end : end + 1])
    ]


def _is_mark(character: str) -> bool:
    return character != "" and unicodedata.category(character).startswith("M")


def _with_plain_apostrophes(text: str) -> str:
    return text.replace("’", "'")
