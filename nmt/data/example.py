"""Sentence pairs as ids, before they become tensors."""

from collections.abc import Sequence
from typing import NamedTuple

TokenizedPair = tuple[Sequence[int], Sequence[int]]
"""Source ids and target ids of a sentence pair, without BOS and EOS."""


class Example(NamedTuple):
    """A sentence pair as ids, without BOS and EOS."""

    number: int
    """Its line in a validation or test corpus, or its index among the kept training pairs of all corpora, from 0."""
    source: Sequence[int]
    target: Sequence[int]
    earlier: Sequence[TokenizedPair] = ()
    """The preceding pairs of its document that the model reads as context, in document order."""

    @property
    def lengths(self) -> tuple[int, int]:
        """Numbers of source and target pieces, including EOS and the earlier pairs. The batch budget counts these."""
        source, target = (
            len(ids) + 1 + sum(len(pair[side]) + 1 for pair in self.earlier)
            for side, ids in enumerate((self.source, self.target))
        )
        return source, target
