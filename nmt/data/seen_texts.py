"""Which texts of a corpus have occurred before, using 8 bytes per text, 16 at the peak."""

import hashlib

import numpy as np
from jaxtyping import Bool, UInt64

_RECENT = 2**19
"""Digests that are kept in a set, which takes ten times as much memory, before they join the sorted array."""


def digest(text: str) -> int:
    """The 64-bit digest of a text."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


class SeenTexts:
    """Remembers a 64-bit digest of each text, not the text itself.

    The chance that any of n different texts is taken for another one is n^2 / 2^65: 0.03 % for 100 million.
    """

    def __init__(self) -> None:
        self._recent = set[int]()
        self._older = np.empty(0, dtype=np.uint64)

    def add(self, text: str) -> bool:
        """Adds a text. Returns whether it had been added before."""
        return bool(self.add_digests(np.array([digest(text)], dtype=np.uint64))[0])

    def add_digests(self, digests: UInt64[np.ndarray, " texts"]) -> Bool[np.ndarray, " texts"]:
        """Adds texts by their digests, in order. Returns whether each had been added before."""
        repeated = np.zeros(len(digests), dtype=bool)
        if len(self._older):
            index = self._older.searchsorted(digests).clip(max=len(self._older) - 1)
            repeated = self._older[index] == digests
        for place, number in enumerate(digests.tolist()):
            if number in self._recent:
                repeated[place] = True
            elif not repeated[place]:
                self._recent.add(number)
        self._merge()
        return repeated

    def _merge(self) -> None:
        if len(self._recent) >= _RECENT:
            recent = np.fromiter(self._recent, dtype=np.uint64, count=len(self._recent))
            self._older = np.concatenate([self._older, recent])
            self._older.sort()
            self._recent.clear()
