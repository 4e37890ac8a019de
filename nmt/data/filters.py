"""Which training pairs are left out, and why."""

from collections import Counter
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int

from nmt.data.corpus import Pairs


@dataclass(frozen=True)
class Filters:
    """What training pairs have to satisfy; validation and test pairs are never filtered.

    max_tokens: longest side allowed, in pieces, EOS counted.
    max_ratio: largest allowed ratio of the longer to the shorter side, in pieces, EOS counted.
    drop_duplicates: keep only the first of equal pairs.
    drop_overlap: drop a pair whose source or whose target also stands in the held-out corpora.
    Raises ValueError for limits that no pair can satisfy.
    """

    max_tokens: int = 128
    max_ratio: float = 3.0
    drop_duplicates: bool = True
    drop_overlap: bool = True

    def __post_init__(self) -> None:
        if self.max_tokens < 2:
            raise ValueError(
                f"max_tokens={self.max_tokens} lets no sentence pass; it counts EOS and must be at least 2."
            )
        if self.max_ratio < 1:
            raise ValueError(
                f"max_ratio={self.max_ratio} lets no pair pass; it is longer / shorter and must be at least 1."
            )

    def keep_texts(self, pairs: Pairs, held_out: Pairs) -> tuple[Pairs, Counter[str]]:
        """The pairs that pass by their text, and how many others were 'empty', 'duplicate' or 'overlap'.

        Lines are compared as they stand, so both corpora must be normalised. A pair counts under the first reason.
        """
        seen: set[tuple[str, str]] = set()
        held_out_sources, held_out_targets = set(held_out.source), set(held_out.target)
        kept, dropped = Pairs([], []), Counter[str]()
        for source, target in zip(pairs.source, pairs.target, strict=True):
            if not source or not target:
                dropped["empty"] += 1
            elif self.drop_duplicates and (source, target) in seen:
                dropped["duplicate"] += 1
            elif self.drop_overlap and (source in held_out_sources or target in held_out_targets):
                dropped["overlap"] += 1
            else:
                kept.source.append(source)
                kept.target.append(target)
            seen.add((source, target))
        return kept, dropped

    def keep_lengths(self, lengths: Int[np.ndarray, "pairs 2"]) -> tuple[Bool[np.ndarray, " pairs"], Counter[str]]:
        """Which pairs pass by the lengths of their sides, and how many are 'too long' or beyond the 'ratio'."""
        too_long = lengths.max(axis=1) > self.max_tokens
        unequal = ~too_long & (lengths.max(axis=1) > self.max_ratio * lengths.min(axis=1))
        dropped = Counter({"too long": int(too_long.sum()), "ratio": int(unequal.sum())})
        return ~(too_long | unequal), dropped
