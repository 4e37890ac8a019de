from collections import Counter

import numpy as np
import pytest

from nmt.config.direction import Direction
from nmt.data.corpus import Pairs
from nmt.data.filters import Filters
from nmt.data.seen_texts import SeenTexts
from nmt.errors import Mistake

EN_VI = Direction("en", "vi")


def test_kept_and_dropped_add_up():
    rng = np.random.default_rng(3)
    lengths = rng.integers(1, 41, (211, 2))
    too_long, unequal = Filters(max_tokens=29, max_ratio=2.0).by_length(lengths)
    assert not (too_long & unequal).any()
    assert min(too_long.sum(), unequal.sum(), (~(too_long | unequal)).sum()) > 0


def kept(
    filters: Filters, pairs: list[tuple[str, str]], *held_out: Pairs, direction: Direction = EN_VI
) -> tuple[list[tuple[str, str]], Counter[str]]:
    """The pairs without a reason to drop them, and the number of each reason."""
    text_filter, seen = filters.text_filter(held_out, direction), SeenTexts()
    reasons = []
    for pair in pairs:
        repeated = filters.drop_duplicates and seen.add("\n".join(pair))
        reason = text_filter(*pair)
        reasons.append("duplicate" if repeated and reason != "empty" else reason)
    return [pair for pair, why in zip(pairs, reasons, strict=True) if not why], Counter(filter(None, reasons))


def test_filtering_twice_drops_nothing_more():
    once, _ = kept(Filters(), [*zip("aabbc", "ddefg", strict=True), ("", "f")], Pairs(["c"], ["h"]))
    assert kept(Filters(), once, Pairs(["c"], ["h"])) == (once, Counter())


def test_each_reason_by_hand():
    pairs = [("a", "p"), ("", "q"), ("b", ""), ("a", "p"), ("a", "r"), ("c", "s"), ("d", "t")]
    found, dropped = kept(Filters(), pairs, Pairs(["c", "x"], ["y"]), Pairs(["z"], ["t"]))
    assert found == [("a", "p"), ("a", "r")]
    assert dropped == {"empty": 2, "duplicate": 1, "overlap": 2}


@pytest.mark.parametrize(
    "copy",
    [
        ("that means “the split” is much earlier", "x"),
        ("That  means: the split is much earlier?", "x"),
        ("x", "Điều này có nghĩa là... sớm hơn"),
        ("x", '"ĐIỀU NÀY CÓ NGHĨA LÀ, SỚM HƠN!"'),
    ],
)
def test_a_copy_that_differs_in_case_punctuation_or_spaces_is_an_overlap(copy: tuple[str, str]) -> None:
    held_out = Pairs(["That means the split is much earlier."], ["Điều này có nghĩa là sớm hơn."])
    assert kept(Filters(), [copy], held_out) == ([], {"overlap": 1})


def test_another_word_accent_or_number_is_no_overlap():
    held_out = Pairs(["Room 12", "C++", "..."], ["Phòng 12", "2 + 2", "..."])
    pairs = [("Room 13", "Phong 12"), ("A room 12", "Phòng 1"), ("C", "2 > 2"), ("!!!", "?")]
    assert kept(Filters(), pairs, held_out) == (pairs, Counter())


def test_a_pair_counts_under_the_first_reason():
    pairs = [("c", "s"), ("c", "s"), ("", ""), ("", "")]
    assert kept(Filters(), pairs, Pairs(["c"], [])) == ([], {"overlap": 1, "duplicate": 1, "empty": 2})


def test_pairs_are_duplicates_only_if_both_sides_are_equal():
    pairs = [("a b", "c"), ("a", "b c"), ("a b c", "a"), ("a", "a b c")]
    assert kept(Filters(), pairs) == (pairs, Counter())


def test_switched_off_filters_keep_all_but_empty_sides():
    filters = Filters(drop_duplicates=False, drop_overlap=False)
    found, dropped = kept(filters, [("a", "p"), ("a", "p"), ("", "q")], Pairs(["a"], ["p"]))
    assert found == [("a", "p"), ("a", "p")]
    assert dropped == {"empty": 1}


def test_a_source_equal_to_a_held_out_target_is_no_overlap():
    assert kept(Filters(), [("a", "b")], Pairs(["b"], ["a"])) == ([("a", "b")], Counter())


@pytest.mark.parametrize(
    ("direction", "dropped"), [("en-vi", {"swapped": 1}), ("vi-en", {"swapped": 1}), ("en-de", {})]
)
def test_swapped_pairs_are_dropped_if_one_language_is_vietnamese(direction: str, dropped: dict[str, int]) -> None:
    good, bad = ("We drink tea.", "Chúng tôi uống trà."), ("Họ uống cà phê.", "They drink coffee.")
    pairs = [good, bad] if direction != "vi-en" else [good[::-1], bad[::-1]]
    found = kept(Filters(drop_swapped=True), pairs, direction=Direction.parse(direction))
    assert found == (pairs[:1] if dropped else pairs, dropped)


def test_limits_are_inclusive_and_symmetric():
    lengths = np.array([[11, 11], [12, 11], [11, 12], [10, 5], [5, 10], [11, 5], [5, 11]])
    too_long, unequal = Filters(max_tokens=11, max_ratio=2.0).by_length(lengths)
    assert too_long.tolist() == [False, True, True, False, False, False, False]
    assert unequal.tolist() == [False, False, False, False, False, True, True]


@pytest.mark.parametrize(
    ("limits", "message"),
    [({"max_tokens": 1}, "max_tokens=1 drops every pair"), ({"max_ratio": 0.5}, "max_ratio=0.5 drops every pair")],
)
def test_limits_that_no_pair_can_satisfy_are_refused(limits, message):
    with pytest.raises(Mistake, match=message):
        Filters(**limits)
