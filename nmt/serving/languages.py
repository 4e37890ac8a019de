"""The languages of a server: which can be translated into which, and which one a text is in."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import py3langid

from nmt.serving.gallery import Gallery

NAMES = {"en": "English", "vi": "Vietnamese", "de": "German", "fr": "French", "cs": "Czech", "ru": "Russian"}
"""Names of languages by code; a code without a name is its own name."""


class Detected(NamedTuple):
    """A language that a text may be in."""

    confidence: float
    """From 0 to 100; those of all languages of the server sum to 100."""
    language: str


class Languages:
    """The languages of the runs of a gallery."""

    def __init__(self, gallery: Gallery) -> None:
        self.directions = list(dict.fromkeys(run.direction for run in gallery.offered.values()))
        self.codes = sorted({code for each in self.directions for code in (each.source, each.target)})

    def targets(self, source: str) -> list[str]:
        """The languages that can be translated into from `source`."""
        return [each.target for each in self.directions if each.source == source]

    def detect(self, text: str) -> Sequence[Detected]:
        """The languages of the server, the most likely for this text first."""
        py3langid.set_languages(self.codes)
        ranked = [(code, float(log_prob)) for code, log_prob in py3langid.rank(text)]
        highest = ranked[0][1]
        total = sum(math.exp(log_prob - highest) for _, log_prob in ranked)
        return [Detected(round(100 * math.exp(log_prob - highest) / total, 1), code) for code, log_prob in ranked]
