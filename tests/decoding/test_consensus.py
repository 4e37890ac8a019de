"""Minimum Bayes risk against its definition."""

import pytest

from nmt.decoding.consensus import minimum_bayes_risk


def overlap(text: str, other: str) -> float:
    return len(set(text.split()) & set(other.split())) / max(1, len(set(text.split())))


def test_the_text_most_similar_to_the_others_is_chosen() -> None:
    texts = ["a b", "x y z", "a b c", "a c", "x"]
    means = [sum(overlap(t, o) for j, o in enumerate(texts) if j != i) for i, t in enumerate(texts)]
    assert minimum_bayes_risk(texts, overlap) == means.index(max(means)) == 0


def test_a_repeated_text_counts_twice() -> None:
    assert minimum_bayes_risk(["x", "a", "b", "b"], lambda text, other: float(text == other)) == 2


def test_a_single_text_is_chosen_and_an_empty_list_is_refused() -> None:
    assert minimum_bayes_risk(["a"], overlap) == 0
    with pytest.raises(ValueError, match="There are no translations to choose from"):
        minimum_bayes_risk([], overlap)
