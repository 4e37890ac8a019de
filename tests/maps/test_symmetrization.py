import random

import pytest

from nmt.maps.symmetrization import SYMMETRIZATIONS, grow_diag_final_and, intersection, pharaoh, union

FORWARD = frozenset({(0, 0), (1, 1), (3, 2), (3, 3), (5, 5)})
BACKWARD = frozenset({(0, 0), (1, 1), (2, 2), (4, 3), (1, 4)})


def test_intersection_and_union() -> None:
    assert intersection(FORWARD, BACKWARD) == {(0, 0), (1, 1)}
    assert union(FORWARD, BACKWARD) == FORWARD | BACKWARD


def test_grow_diag_final_and_by_hand() -> None:
    """From (1, 1) grows (2, 2), from there (3, 2) since source 3 is free, and (3, 3) since target 3 is; from (3, 3)
    (4, 3) since source 4 is. (1, 4) touches nothing but has source 1 taken; (5, 5) has both words free: final.
    """
    expected = {(0, 0), (1, 1), (2, 2), (3, 2), (3, 3), (4, 3), (5, 5)}
    # (1, 4) touches no grown link, and its source word has one: final-and leaves it out.
    assert grow_diag_final_and(FORWARD, BACKWARD) == expected


def test_a_neighbor_with_both_words_linked_does_not_grow() -> None:
    both = frozenset({(0, 0), (1, 1)})
    assert grow_diag_final_and(both | {(0, 1)}, both) == both


def test_final_takes_the_forward_direction_first() -> None:
    assert grow_diag_final_and(frozenset({(0, 0)}), frozenset({(0, 5)})) == {(0, 0)}
    assert grow_diag_final_and(frozenset({(0, 5)}), frozenset({(0, 0)})) == {(0, 5)}


@pytest.mark.parametrize("name", SYMMETRIZATIONS)
def test_equal_directions_are_the_result(name: str) -> None:
    assert SYMMETRIZATIONS[name](FORWARD, FORWARD) == FORWARD


def test_every_result_lies_between_intersection_and_union() -> None:
    chosen = random.Random(3)
    pairs = [(i, j) for i in range(6) for j in range(7)]
    for _ in range(200):
        forward, backward = (frozenset(chosen.sample(pairs, chosen.randint(0, 9))) for _ in range(2))
        grown = grow_diag_final_and(forward, backward)
        assert forward & backward <= grown <= forward | backward


def test_a_pharaoh_line_is_sorted() -> None:
    assert pharaoh({(1, 0), (0, 2), (10, 1), (0, 1)}) == "0-1 0-2 1-0 10-1"
    assert pharaoh([]) == ""
