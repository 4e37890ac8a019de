"""What `make test` leaves out of a grid of combinations, `make soak` tries."""

import itertools
import re
from collections.abc import Hashable, Sequence
from pathlib import Path

import grids
import pytest
from grids import covering

AXES = ("abcdefghi", "xyz", (1, 2, 3), (True, False))


def pairs(rows: Sequence[Sequence[Hashable]]) -> set[object]:
    """The choices, and the pairs of them, that some row has."""
    return {chosen for row in rows for size in (1, 2) for chosen in itertools.combinations(enumerate(row), size)}


@pytest.mark.parametrize(
    "rows", [list(itertools.product(*AXES)), list(itertools.product(*AXES[:2])), ["ax", "by", "ax"], ["a", "b"], []]
)
def test_every_pair_of_choices_is_covered_in_the_order_of_the_grid(
    rows: list[Sequence[Hashable]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grids, "SOAK", False)
    chosen = covering(rows)
    assert pairs(chosen) == pairs(rows)
    places = [rows.index(row) for row in chosen]
    assert places == sorted(set(places)), "nothing twice"
    for row in chosen:
        assert pairs([other for other in chosen if other != row]) != pairs(chosen), "without a row, a pair is missing"


def test_every_choice_is_covered_without_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grids, "SOAK", False)
    chosen = covering(itertools.product(*AXES), pairs=False)
    assert [set(axis) for axis in zip(*chosen, strict=True)] == [set(axis) for axis in AXES]
    assert len(chosen) == 9


def test_a_grid_is_much_smaller_than_all_combinations(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = list(itertools.product(*AXES))
    monkeypatch.setattr(grids, "SOAK", False)
    assert len(rows) == 162
    assert len(covering(rows)) <= 30, "27 pairs of the two longest axes need a row each"
    monkeypatch.setattr(grids, "SOAK", True)
    assert covering(rows) == rows


def test_make_soak_runs_all_tests() -> None:
    makefile = (Path(__file__).resolve().parents[1] / "Makefile").read_text(encoding="utf-8")
    [line] = re.findall(r"^\tFUZZ=soak .* pytest .*$", makefile, re.MULTILINE)
    assert "tests" not in line.replace("pytest", "")
