"""Minimum Bayes risk: of several translations the one that is most like all of them (Kumar & Byrne 2004)."""

from collections.abc import Callable, Sequence
from functools import cache


def minimum_bayes_risk(texts: Sequence[str], utility: Callable[[str, str], float]) -> int:
    """The index of the text of the highest mean utility(text, other) over all the others, the first one of equal ones.

    Every text counts the same, as samples do (Eikema & Aziz 2020); one that comes twice counts twice. Raises ValueError
    for no texts.
    """
    if not texts:
        raise ValueError("There is no translation to choose; give at least one.")
    known = cache(utility)
    risks = [
        -sum(known(text, other) for place, other in enumerate(texts) if place != index)
        for index, text in enumerate(texts)
    ]
    return risks.index(min(risks))
