"""The languages of a server: its translation directions, and language detection."""

import math
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from py3langid.langid import MODEL_FILE, LanguageIdentifier

from nmt.serving.gallery import Gallery


class DetectedLanguage(NamedTuple):
    """A language that a text may be written in."""

    confidence: float
    """From 0 to 100: the probability among all languages that can be detected, not only those of the server."""
    language: str


class Languages:
    """The languages of a gallery's runs."""

    def __init__(self, gallery: Gallery) -> None:
        self.directions = list(dict.fromkeys(run.direction for run in gallery.offered.values()))
        self.codes = sorted({code for direction in self.directions for code in (direction.source, direction.target)})
        self._identifier = _identifier()

    def targets(self, source: str) -> list[str]:
        """The languages that `source` can be translated into."""
        return [direction.target for direction in self.directions if direction.source == source]

    def detect(self, text: str) -> Sequence[DetectedLanguage]:
        """The server's languages, ordered by likelihood for this text; those that cannot be detected come last.

        A text in none of them, such as a number, gives confidences of about 0.
        """
        # Without letters, every language is equally likely.
        has_letters = any(map(str.isalpha, text))
        ranked = [(code, float(log_prob)) for code, log_prob in self._identifier.rank(text)]
        highest = ranked[0][1]
        total = sum(math.exp(log_prob - highest) for _, log_prob in ranked)
        detected = [
            DetectedLanguage(round(has_letters * 100 * math.exp(log_prob - highest) / total, 1), code)
            for code, log_prob in ranked
            if code in self.codes
        ]
        detectable = {language.language for language in detected}
        return [*detected, *(DetectedLanguage(0.0, code) for code in self.codes if code not in detectable)]


@cache
def _identifier() -> LanguageIdentifier:
    """py3langid's identifier with all its languages. Loading takes a second, so it is done when the server starts."""
    return LanguageIdentifier.from_model_file(MODEL_FILE)
