"""The direction of a translation."""

import re
from dataclasses import dataclass

LANGUAGES = {"en": "English", "vi": "Vietnamese", "de": "German", "fr": "French", "cs": "Czech", "ru": "Russian"}
"""Names of languages by code; a code without a name is its own name."""


@dataclass(frozen=True)
class Direction:
    """Source and target language by their codes, which are also the extensions of the corpus files."""

    source: str
    target: str

    @classmethod
    def parse(cls, text: str) -> "Direction":
        """The direction written as 'en-vi'. Raises ValueError for any other form and for equal languages."""
        match = re.fullmatch(r"([a-z]{2,3})-([a-z]{2,3})", text)
        if match is None or match[1] == match[2]:
            raise ValueError(f"Unknown direction '{text}'; write two different language codes, such as en-vi or vi-en.")
        return cls(match[1], match[2])

    def __str__(self) -> str:
        return f"{self.source}-{self.target}"
