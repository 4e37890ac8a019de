"""The direction of a translation."""

import re
from dataclasses import dataclass

from nmt.errors import Mistake

LANGUAGES = {"en": "English", "vi": "Vietnamese", "de": "German", "fr": "French", "cs": "Czech", "ru": "Russian"}
"""Language names by code. A language that is not listed is called by its code."""


@dataclass(frozen=True)
class Direction:
    """The codes of the source and target languages, which are also the extensions of the corpus files."""

    source: str
    target: str

    @classmethod
    def parse(cls, text: str) -> "Direction":
        """Parses text such as 'en-vi'. Raises Mistake for any other form, and if both languages are the same."""
        match = re.fullmatch(r"([a-z]{2,3})-([a-z]{2,3})", text)
        if match is None or match[1] == match[2]:
            raise Mistake(f"Unknown direction '{text}'; write two different language codes, such as en-vi or vi-en.")
        return cls(match[1], match[2])

    def __str__(self) -> str:
        return f"{self.source}-{self.target}"
