"""Which training pairs are left out, and why."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int

from nmt.config.direction import Direction
from nmt.data.corpus import Pairs
from nmt.data.inspection import swapped_check


@dataclass(frozen=True)
class Filters:
    """What training pairs have to satisfy; validation and test pairs are never filtered.

    max_tokens: longest side allowed, in pieces, EOS counted.
    max_ratio: largest allowed ratio of the longer to the shorter side, in pieces, EOS counted.
    drop_duplicates: keep only the first of equal pairs.
    drop_overlap: drop a pair whose source or whose target also stands in the held-out corpora.
    drop_swapped: drop a pair whose sides are in each other's language, where one of the two is Vietnamese.
    Raises ValueError for limits that no pair can satisfy.
    """

    max_tokens: int = 128
    max_ratio: float = 3.0
    drop_duplicates: bool = True
    drop_overlap: bool = True
    drop_swapped: bool = True

    def __post_init__(self) -> None:
        if self.max_tokens < 2:
            raise ValueError(
                f"max_tokens={self.max_tokens} lets no sentence pass; it counts EOS and must be at least 2."
            )
        if self.max_ratio < 1:
            raise ValueError(
                f"max_ratio={self.max_ratio} lets no pair pass; it is longer / shorter and must be at least 1."
            )

    def keep_texts(
        self, pairs: Iterable[tuple[str, str]], held_out: Pairs, dropped: Counter[str], direction: Direction
    ) -> Iterator[tuple[str, str]]:
        """The pairs that pass by their text; the others are counted in `dropped`: 'empty', 'duplicate', 'overlap' or
        'swapped'.

        Lines are compared as they stand, so both corpora must be normalised. A pair counts under the first reason. Of
        each pair a digest of 16 bytes is remembered, not its text. The counts are whole after the last pair.
        """
        seen: set[bytes] = set()
        swapped = swapped_check(direction) if self.drop_swapped else None
        held_out_sources, held_out_targets = set(held_out.source), set(held_out.target)
        for source, target in pairs:
            digest = _digest(source, target) if self.drop_duplicates else b""
            if not source or not target:
                dropped["empty"] += 1
            elif self.drop_duplicates and digest in seen:
                dropped["duplicate"] += 1
            elif self.drop_overlap and (source in held_out_sources or target in held_out_targets):
                dropped["overlap"] += 1
            elif swapped and swapped(source, target):
                dropped["swapped"] += 1
            else:
                yield source, target
            seen.add(digest)

    def keep_lengths(self, lengths: Int[np.ndarray, "pairs 2"]) -> tuple[Bool[np.ndarray, " pairs"], Counter[str]]:
        """Which pairs pass by the lengths of their sides, and how many are 'too long' or beyond the 'ratio'."""
        too_long = lengths.max(axis=1) > self.max_tokens
        unequal = ~too_long & (lengths.max(axis=1) > self.max_ratio * lengths.min(axis=1))
        dropped = Counter({"too long": int(too_long.sum()), "ratio": int(unequal.sum())})
        return ~(too_long | unequal), dropped


def _digest(source: str, target: str) -> bytes:
    # A normalised line holds no line feed.
    return hashlib.blake2b(f"{source}\n{target}".encode(), digest_size=16).digest()
