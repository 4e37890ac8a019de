"""Grids of combinations: `make test` tries a few of them that have every pair of choices, and `make soak` all."""

import itertools
import os
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeVar

SOAK = os.environ.get("FUZZ") == "soak"
T = TypeVar("T")


def covering(
    combinations: Iterable[T],
    choices: Callable[[T], Sequence[Hashable]] = tuple,  # type: ignore[assignment]
    pairs: bool = True,
) -> list[T]:
    """All combinations in `make soak`; else a few that have every choice and every pair of them, by a greedy search.

    `choices` are a combination's choices, one of each axis. What no combination has is not asked for. Without `pairs`,
    every choice is enough.
    """
    everything = list(combinations)
    if SOAK:
        return everything
    numbered = [list(enumerate(choices(combination))) for combination in everything]
    parts = [set[object](itertools.combinations(own, 2) if pairs else ()) | set(own) for own in numbered]
    missing = set[object]().union(*parts)
    chosen: set[int] = set()
    while missing:
        best = max(range(len(everything)), key=lambda number: len(parts[number] & missing))
        chosen.add(best)
        missing -= parts[best]
    return [everything[number] for number in sorted(chosen)]
