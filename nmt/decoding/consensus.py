"""Minimum Bayes risk: chooses the translation that is most similar to the others (Kumar & Byrne 2004)."""

from collections.abc import Callable, Sequence
from functools import cache


def minimum_bayes_risk(texts: Sequence[str], utility: Callable[[str, str], float]) -> int:
    """The index of the text with the highest mean utility(text, other) over all other texts; the first one if tied.

    All texts have the same weight, as samples should (Eikema & Aziz 2020), and a text that occurs several times counts
    each time. Raises ValueError for an empty list.
    """
    if not texts:
        raise ValueError("There are no translations to choose from.")
    cached_utility = cache(utility)
    risks = [
        -sum(cached_utility(text, other) for position, other in enumerate(texts) if position != index)
        for index, text in enumerate(texts)
    ]
    return risks.index(min(risks))
