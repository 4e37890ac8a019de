import numpy as np
import pytest

from nmt.data.corpus import Pairs
from nmt.data.filters import Filters

NOTHING = Pairs([], [])


def test_kept_and_dropped_add_up():
    rng = np.random.default_rng(3)
    lengths = rng.integers(1, 41, (211, 2))
    keep, dropped = Filters(max_tokens=29, max_ratio=2.0).keep_lengths(lengths)
    assert keep.sum() + sum(dropped.values()) == 211
    assert min(dropped.values()) > 0


def test_filtering_twice_drops_nothing_more():
    pairs = Pairs(["a", "a", "b", "", "c"], ["d", "d", "e", "f", "g"])
    kept, _ = Filters().keep_texts(pairs, Pairs(["c"], ["h"]))
    again, dropped = Filters().keep_texts(kept, Pairs(["c"], ["h"]))
    assert again == kept
    assert not dropped


def test_each_reason_by_hand():
    pairs = Pairs(["a", "", "b", "a", "a", "c", "d"], ["p", "q", "", "p", "r", "s", "t"])
    kept, dropped = Filters().keep_texts(pairs, Pairs(["c", "x"], ["y", "t"]))
    assert kept == Pairs(["a", "a"], ["p", "r"])
    assert dropped == {"empty": 2, "duplicate": 1, "overlap": 2}


def test_switched_off_filters_keep_all_but_empty_sides():
    pairs = Pairs(["a", "a", ""], ["p", "p", "q"])
    kept, dropped = Filters(drop_duplicates=False, drop_overlap=False).keep_texts(pairs, Pairs(["a"], ["p"]))
    assert kept == Pairs(["a", "a"], ["p", "p"])
    assert dropped == {"empty": 1}


def test_a_source_among_the_held_out_targets_is_no_overlap():
    kept, _ = Filters().keep_texts(Pairs(["a"], ["b"]), Pairs(["b"], ["a"]))
    assert kept == Pairs(["a"], ["b"])


def test_limits_are_inclusive_and_symmetric():
    lengths = np.array([[11, 11], [12, 11], [11, 12], [10, 5], [5, 10], [11, 5], [5, 11]])
    keep, dropped = Filters(max_tokens=11, max_ratio=2.0).keep_lengths(lengths)
    assert keep.tolist() == [True, False, False, True, True, False, False]
    assert dropped == {"too long": 2, "ratio": 2}


@pytest.mark.parametrize(
    ("limits", "message"), [({"max_tokens": 1}, "max_tokens=1"), ({"max_ratio": 0.5}, "max_ratio=0.5")]
)
def test_limits_that_nothing_can_satisfy_are_refused(limits, message):
    with pytest.raises(ValueError, match=message):
        Filters(**limits)
