"""Which training pairs are dropped, and why."""

from collections.abc import Iterable, Set
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int

from nmt.config.direction import Direction
from nmt.data.corpus import Pairs
from nmt.data.language_checks import Check, swapped_check
from nmt.errors import Mistake
from nmt.text.normalize import without_punctuation


@dataclass(frozen=True)
class Filters:
    """Conditions on training pairs; validation and test pairs are never filtered.

    max_tokens: largest allowed length of a side, in pieces, including EOS.
    max_ratio: largest allowed ratio of the longer to the shorter side, in pieces, including EOS.
    drop_duplicates: keep only the first of identical pairs.
    drop_overlap: drop a pair whose source or target is also in the held-out corpora, ignoring case, punctuation and
        spaces.
    drop_swapped: drop a pair whose sides are in each other's language, if one language is Vietnamese.
    Raises Mistake for limits that no pair can satisfy.
    """

    max_tokens: int = 128
    max_ratio: float = 3.0
    drop_duplicates: bool = True
    drop_overlap: bool = True
    drop_swapped: bool = True

    def __post_init__(self) -> None:
        if self.max_tokens < 2:
            raise Mistake(
                f"filters.max_tokens={self.max_tokens} drops every pair; it counts EOS and must be at least 2."
            )
        if self.max_ratio < 1:
            raise Mistake(
                f"filters.max_ratio={self.max_ratio} drops every pair; it is the longer side divided by the shorter "
                "one, so it must be at least 1."
            )

    def text_filter(self, held_out: Iterable[Pairs], direction: Direction) -> "TextFilter":
        """The filter of pairs by their text. A side is a line or a whole document."""
        sources, targets = set[str](), set[str]()
        for pairs in held_out if self.drop_overlap else ():
            sources.update(map(without_punctuation, pairs.source))
            targets.update(map(without_punctuation, pairs.target))
        return TextFilter(sources, targets, swapped_check(direction) if self.drop_swapped else None)

    def by_length(
        self, lengths: Int[np.ndarray, "pairs 2"]
    ) -> tuple[Bool[np.ndarray, " pairs"], Bool[np.ndarray, " pairs"]]:
        """Which pairs are too long, and which others exceed the ratio, by the lengths of their sides."""
        too_long = lengths.max(axis=1) > self.max_tokens
        return too_long, ~too_long & (lengths.max(axis=1) > self.max_ratio * lengths.min(axis=1))


@dataclass(frozen=True)
class TextFilter:
    """Says why to drop a pair by its text alone; whether it is a duplicate depends on the pairs before it."""

    sources: Set[str]
    targets: Set[str]
    """The held-out sides, as `without_punctuation` writes them."""
    swapped: Check | None

    def __call__(self, source: str, target: str) -> str:
        """The first reason that applies of 'empty', 'overlap' and 'swapped', or ''; both sides must be normalized."""
        if not source or not target:
            return "empty"
        held_out = self.sources or self.targets
        if held_out and (without_punctuation(source) in self.sources or without_punctuation(target) in self.targets):
            return "overlap"
        return "swapped" if self.swapped and self.swapped(source, target) else ""
