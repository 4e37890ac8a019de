"""The languages of a server: its translation directions, and language detection."""

import math
from collections.abc import Sequence
from copy import copy
from functools import cache
from typing import NamedTuple

from py3langid.langid import MODEL_FILE, LanguageIdentifier

from nmt.serving.gallery import Gallery


class DetectedLanguage(NamedTuple):
    """A language that a text may be written in."""

    confidence: float
    """From 0 to 100; the confidences of all languages of the server sum to 100."""
    language: str


class Languages:
    """The languages of a gallery's runs."""

    def __init__(self, gallery: Gallery) -> None:
        self.directions = list(dict.fromkeys(run.direction for run in gallery.offered.values()))
        self.codes = sorted({code for direction in self.directions for code in (direction.source, direction.target)})
        # Select the languages once: this takes ten times as long as detecting the language of a text.
        self._identifier = copy(_every_language())
        self._identifier.set_languages(set(self.codes) & set(_every_language().labels))

    def targets(self, source: str) -> list[str]:
        """The languages that `source` can be translated into."""
        return [direction.target for direction in self.directions if direction.source == source]

    def detect(self, text: str) -> Sequence[DetectedLanguage]:
        """The server's languages, ordered by likelihood for this text; those that cannot be detected come last."""
        ranked = [(code, float(log_prob)) for code, log_prob in self._identifier.rank(text)]
        highest = ranked[0][1] if ranked else 0.0
        total = sum(math.exp(log_prob - highest) for _, log_prob in ranked)
        detected = [
            DetectedLanguage(round(100 * math.exp(log_prob - highest) / total, 1), code) for code, log_prob in ranked
        ]
        detectable = {language.language for language in detected}
        return [*detected, *(DetectedLanguage(0.0, code) for code in self.codes if code not in detectable)]


@cache
def _every_language() -> LanguageIdentifier:
    """py3langid's identifier with all its languages. Loading takes a second, so it is done when the server starts."""
    return LanguageIdentifier.from_model_file(MODEL_FILE)
