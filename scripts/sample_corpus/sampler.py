"""Seeded choices that prefer the least used items, so that every word and construction occurs often enough."""

from collections import Counter
from collections.abc import Callable, Sequence
from random import Random
from typing import TypeVar

Item = TypeVar("Item")


class NothingFitsError(ValueError):
    """The choices so far cannot be completed to a sentence, so the derivation must be drawn again."""


class Sampler:
    """Draws with `Random.random()` only, whose sequence Python guarantees never to change."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self.used: Counter[str] = Counter()

    def chance(self, probability: float) -> bool:
        return self._random.random() < probability

    def fraction(self) -> float:
        return self._random.random()

    def pick(self, items: Sequence[Item]) -> Item:
        """Return one of the items, all equally likely. Raises NothingFitsError if the list is empty."""
        if not items:
            raise NothingFitsError("nothing to pick from: the lexicon has no entry that fits")
        return items[int(self._random.random() * len(items))]

    def weighted(self, items: Sequence[tuple[Item, float]]) -> Item:
        """Return an item with a probability proportional to its weight."""
        point = self._random.random() * sum(weight for _, weight in items)
        for item, weight in items:
            point -= weight
            if point < 0:
                return item
        return items[-1][0]

    def rare(self, items: Sequence[Item], form: Callable[[Item], str], tries: int = 12) -> Item:
        """Draw some of the items (at most a third) and return the one with the least used words.

        `form` gives the words of an item, Vietnamese ones as `vi:sách`; the rarest of them counts.
        """
        tries = min(tries, 1 + len(items) // 3)
        drawn = [self.pick(items) for _ in range(tries)]
        return min(drawn, key=lambda item: min(self.used[word] for word in form(item).lower().split()))
