"""Which texts of a corpus have occurred before, in 8 bytes for each of them, and 16 at the peak."""

import hashlib

import numpy as np

_RECENT = 2**19
"""Digests that are kept in a set, which takes ten times as much memory, before they join the sorted array."""


class SeenTexts:
    """Remembers a 64-bit digest of each text, not the text itself.

    The chance that any of n different texts is taken for another one is n^2 / 2^65: 0.03 % for 100 million.
    """

    def __init__(self) -> None:
        self._recent = set[int]()
        self._older = np.empty(0, dtype=np.uint64)

    def add(self, text: str) -> bool:
        """Adds a text. Returns whether it had been added before."""
        digest = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")
        if digest in self._recent:
            return True
        # A number of numpy's own type: for one of Python, numpy would convert the whole array.
        index = self._older.searchsorted(np.uint64(digest))
        if index < len(self._older) and int(self._older[index]) == digest:
            return True
        self._recent.add(digest)
        if len(self._recent) >= _RECENT:
            recent = np.fromiter(self._recent, dtype=np.uint64, count=len(self._recent))
            self._older = np.concatenate([self._older, recent])
            self._older.sort()
            self._recent.clear()
        return False
