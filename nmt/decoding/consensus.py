"""Minimum Bayes risk: chooses the translation that is most similar to the others (Kumar & Byrne 2004)."""

from collections.abc import Callable, Sequence
from functools import cache

from nmt.errors import Mistake


def minimum_bayes_risk(texts: Sequence[str], utility: Callable[[str, str], float]) -> int:
    """The index of the text with the highest mean utility(text, other) over all other texts; the first one if tied.

    All texts have the same weight, as samples should (Eikema & Aziz 2020), and a text that occurs several times counts
    each time. Raises Mistake for an empty list.
    """
    if not texts:
        raise Mistake("There are no translations to choose from; pass at least one.")
    known = cache(utility)
    risks = [
        -sum(known(text, other) for position, other in enumerate(texts) if position != index)
        for index, text in enumerate(texts)
    ]
    return risks.index(min(risks))
