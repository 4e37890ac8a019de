"""Which training pairs are dropped, and why."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int

from nmt.config.direction import Direction
from nmt.data.corpus import Pairs
from nmt.data.inspection import swapped_check
from nmt.data.seen_texts import SeenTexts
from nmt.errors import Mistake
from nmt.text.normalize import without_punctuation


@dataclass(frozen=True)
class Filters:
    """Conditions on training pairs; validation and test pairs are never filtered.

    max_tokens: largest allowed length of a side, in pieces, including EOS.
    max_ratio: largest allowed ratio of the longer to the shorter side, in pieces, including EOS.
    drop_duplicates: keep only the first of identical pairs.
    drop_overlap: drop a pair whose source or target is also in the held-out corpora, whatever its case, punctuation
        and spaces there.
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

    def text_filter(self, held_out: Iterable[Pairs], direction: Direction) -> Callable[..., str]:
        """Returns a function reason(source, target, may_repeat=False) that says why to drop a pair, or '' to keep it.

        The reasons are 'empty', 'duplicate', 'overlap' and 'swapped'; the first one that applies is returned. With
        may_repeat, no pair counts as a duplicate. A side is a line or a whole document. Sides must be normalized
        already.
        """
        sources, targets, seen = set[str](), set[str](), SeenTexts()
        for pairs in held_out:
            sources.update(map(without_punctuation, pairs.source))
            targets.update(map(without_punctuation, pairs.target))
        swapped = swapped_check(direction) if self.drop_swapped else None

        def reason(source: str, target: str, may_repeat: bool = False) -> str:
            repeated = False
            if self.drop_duplicates and not may_repeat:
                # Unambiguous: lines contain no line feed, and both sides of a document have the same number of lines.
                repeated = seen.add(f"{source}\n{target}")
            if not source or not target:
                return "empty"
            if repeated:
                return "duplicate"
            if self.drop_overlap and (without_punctuation(source) in sources or without_punctuation(target) in targets):
                return "overlap"
            return "swapped" if swapped and swapped(source, target) else ""

        return reason

    def keep_lengths(self, lengths: Int[np.ndarray, "pairs 2"]) -> tuple[Bool[np.ndarray, " pairs"], Counter[str]]:
        """Which pairs to keep by the lengths of their sides, and how many are 'too long' or exceed the 'ratio'."""
        too_long = lengths.max(axis=1) > self.max_tokens
        unequal = ~too_long & (lengths.max(axis=1) > self.max_ratio * lengths.min(axis=1))
        dropped = Counter({"too long": int(too_long.sum()), "ratio": int(unequal.sum())})
        return ~(too_long | unequal), dropped
