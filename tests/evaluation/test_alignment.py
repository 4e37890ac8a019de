from pathlib import Path

import numpy as np
import pytest

from nmt.evaluation.alignment import (
    Alignment,
    aer,
    argmax_links,
    check_links,
    choose,
    links,
    read_alignments,
)

GOLD = [
    Alignment(frozenset({(0, 0), (1, 2)}), frozenset({(0, 0), (1, 2), (2, 1)})),
    Alignment(frozenset(), frozenset({(3, 0)})),
    Alignment(frozenset({(1, 1)}), frozenset({(1, 1)})),
]


def test_sure_links_are_possible_too(tmp_path: Path) -> None:
    path = tmp_path / "test.en-vi.align"
    path.write_text("0-0 1-2 2?1\n3?0\n1-1\n")
    assert read_alignments(path) == GOLD


def test_flipping_swaps_the_sides(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("0-1 2?5\r\n\n")
    assert read_alignments(path) == [
        Alignment(frozenset({(0, 1)}), frozenset({(0, 1), (2, 5)})),
        Alignment(frozenset(), frozenset()),
    ]
    assert read_alignments(path, flip=True)[0] == Alignment(frozenset({(1, 0)}), frozenset({(1, 0), (5, 2)}))


@pytest.mark.parametrize("link", ["1:2", "1-", "-1-2", "1-2-3", "a-b", "²-1"])
def test_a_bad_link_names_file_and_line(tmp_path: Path, link: str) -> None:
    path = tmp_path / "a"
    path.write_text(f"0-0\n1-1 {link}\n", encoding="utf-8")
    with pytest.raises(ValueError, match=rf"a, line 2: '{link}' is not a link; expected i-j"):
        read_alignments(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"gold\.align"):
        read_alignments(tmp_path / "gold.align")


def test_links_outside_of_the_sentences_name_file_and_line() -> None:
    sources, targets = ["a b c", "a b c d", "a b"], ["x y z", "x", "x y"]
    check_links(Path("gold"), GOLD, sources, targets)
    with pytest.raises(ValueError, match="gold, line 3: link 1-1 is outside of a pair of 2 source and 1 target words"):
        check_links(Path("gold"), GOLD, sources, ["x y z", "x", "x"])
    with pytest.raises(ValueError, match="gold has 3 lines, but there are 2 source and 3 target"):
        check_links(Path("gold"), GOLD, sources[:2], targets)


def test_aer_by_hand() -> None:
    # A = 3 + 1 + 1 links, S = 2 + 0 + 1; A n S = 1 + 0 + 0, A n P = 2 + 1 + 0.
    predicted = [{(0, 0), (2, 1), (2, 2)}, {(3, 0)}, {(0, 1)}]
    assert aer(predicted, GOLD) == pytest.approx(1 - (1 + 3) / (5 + 3))


def test_aer_is_0_for_the_sure_links_with_any_possible_ones_and_1_for_others() -> None:
    assert aer([gold.sure for gold in GOLD], GOLD) == 0
    assert aer([gold.possible for gold in GOLD], GOLD) == 0
    assert aer([{(7, 7)}] * 3, GOLD) == 1
    assert aer([()] * 3, GOLD) == 1


def test_aer_is_of_the_corpus_not_the_mean_of_sentences() -> None:
    right, wrong = [GOLD[0].sure, set(), set()], [set(), set(), {(0, 0)}]
    assert aer(right, GOLD) == pytest.approx(1 - 4 / 5)
    assert aer(wrong, GOLD) == 1


def test_aer_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="no links is not defined"):
        aer([[]], [GOLD[1]])
    with pytest.raises(ValueError, match="1 predicted alignments but 3 gold"):
        aer([[]], GOLD)


def test_each_target_word_links_to_its_largest_weight_if_it_has_any() -> None:
    assert argmax_links(np.array([[0.1, 0.7, 0.2], [0.0, 0.0, 0.0], [0.5, 0.2, 0.3]])) == {(1, 0), (0, 2)}


@pytest.mark.parametrize("shift", [0, 1])
@pytest.mark.parametrize(("layer", "head"), [(0, 2), (1, 0)])
def test_choose_finds_the_head_that_was_made_to_align(shift: int, layer: int, head: int) -> None:
    draw = np.random.default_rng(11)
    sizes = [(5, 3), (7, 5), (4, 6), (6, 4)]
    sources = [[f"▁{i}" for i in range(n)] for n, _ in sizes]
    targets = [[f"▁{i}" for i in range(n)] for _, n in sizes]
    gold, maps = [], []
    for n, m in sizes:
        true = draw.integers(n, size=m)
        weights = draw.dirichlet(np.ones(n + 1), size=(2, 3, m + 1))
        weights[layer, head] *= 1e-4
        weights[layer, head, np.arange(m) + shift, true] = 1e-3
        maps.append(weights)
        gold.append(Alignment(*[frozenset((int(i), j) for j, i in enumerate(true))] * 2))
    choice = choose(maps, sources, targets, gold)
    assert choice == (shift, layer, head, 0.0)
    predicted = [links(*pair, choice) for pair in zip(maps, sources, targets, strict=True)]
    assert aer(predicted, gold) == 0


def test_of_equal_choices_the_simplest_wins() -> None:
    choice = choose([np.full((2, 3, 2, 2), 0.5)], [["▁a"]], [["▁x"]], [GOLD[2]])
    assert choice[:3] == (0, 0, None)


def test_choosing_from_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="no attention maps"):
        choose([], [], [], [])
