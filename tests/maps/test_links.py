import random
from pathlib import Path

import numpy as np
import pytest

from nmt.errors import Mistake
from nmt.maps.links import (
    Alignment,
    MapSelector,
    argmax_links,
    best,
    check_links,
    diagonal_links,
    rates,
    rates_of_maps,
    read_alignments,
    selected_word_map,
    threshold_links,
)
from nmt.maps.words import PieceRow

GOLD = [
    Alignment(frozenset({(0, 0), (1, 2)}), frozenset({(0, 0), (1, 2), (2, 1)})),
    Alignment(frozenset(), frozenset({(3, 0)})),
    Alignment(frozenset({(1, 1)}), frozenset({(1, 1)})),
]


def test_sure_links_are_also_possible(tmp_path: Path) -> None:
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
    with pytest.raises(Mistake, match=rf"a, line 2: '{link}' is not a link; write i-j"):
        read_alignments(path)


def test_a_number_that_is_too_long_is_no_number(tmp_path: Path) -> None:
    (tmp_path / "a").write_text(f"0-{'1' * 4301}\n")
    with pytest.raises(Mistake, match=r"^\S*a, line 1: '0-1{38}' is not a link"):
        read_alignments(tmp_path / "a")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(Mistake, match=r"gold\.align"):
        read_alignments(tmp_path / "gold.align")


def test_links_that_do_not_fit_name_file_and_line() -> None:
    sources, targets = ["a b c", "a b c d", "a b"], ["x y z", "x", "x y"]
    check_links(Path("gold"), GOLD, sources, targets)
    with pytest.raises(Mistake, match="gold, line 3: link 1-1 does not fit 2 source and 1 target words"):
        check_links(Path("gold"), GOLD, sources, ["x y z", "x", "x"])
    with pytest.raises(Mistake, match="gold has 3 lines, but there are 2 source and 3 target"):
        check_links(Path("gold"), GOLD, sources[:2], targets)


def test_rates_by_hand() -> None:
    # A = 3 + 1 + 1 links, S = 2 + 0 + 1; A n S = 1 + 0 + 0, A n P = 2 + 1 + 0.
    predicted = [{(0, 0), (2, 1), (2, 2)}, {(3, 0)}, {(0, 1)}]
    assert rates(predicted, GOLD) == pytest.approx((1 - (1 + 3) / (5 + 3), 3 / 5, 1 / 3))


def counted(predicted: list[set[tuple[int, int]]], gold: list[Alignment]) -> tuple[float, float, float]:
    """The rates, counted link by link."""
    right_sure = right_possible = links = sure = 0
    for sentence, (of_sure, of_possible) in zip(predicted, gold, strict=True):
        for link in sentence:
            links += 1
            right_sure += link in of_sure
            right_possible += link in of_possible
        sure += len(of_sure)
    return 1 - (right_sure + right_possible) / (links + sure), right_possible / links, right_sure / sure


def test_rates_of_random_links_match_an_independent_count() -> None:
    chosen = random.Random(5)
    for _ in range(50):
        gold, predicted = [], []
        for _ in range(chosen.randint(2, 7)):
            pairs = [(i, j) for i in range(5) for j in range(6)]
            possible = set(chosen.sample(pairs, chosen.randint(3, 12)))
            gold.append(Alignment(frozenset(chosen.sample(sorted(possible), 2)), frozenset(possible)))
            predicted.append(set(chosen.sample(pairs, chosen.randint(1, 9))))
        assert rates(predicted, gold) == pytest.approx(counted(predicted, gold))


def test_aer_is_0_for_sure_links_with_any_possible_ones_and_1_for_others() -> None:
    assert rates([gold.sure for gold in GOLD], GOLD) == (0, 1, 1)
    assert rates([gold.possible for gold in GOLD], GOLD) == (0, 1, 1)
    assert rates([{(7, 7)}] * 3, GOLD) == (1, 0, 0)
    assert rates([()] * 3, GOLD) == (1, 1, 0), "what predicts nothing predicts nothing wrong"


def test_aer_is_of_the_corpus_not_the_mean_of_sentences() -> None:
    right, wrong = [GOLD[0].sure, set(), set()], [set(), set(), {(0, 0)}]
    assert rates(right, GOLD).aer == pytest.approx(1 - 4 / 5)
    assert rates(wrong, GOLD).aer == 1


def test_rates_without_links_are_refused() -> None:
    with pytest.raises(Mistake, match="alignment error rate is undefined"):
        rates([[]], [GOLD[1]])
    with pytest.raises(ValueError, match="1 predicted but 3 gold alignments"):
        rates([[]], GOLD)


def test_a_threshold_links_whatever_reaches_it() -> None:
    weights = np.array([[0.1, 0.7, 0.2], [0.0, 0.0, 0.0], [0.5, 0.2, 0.3]])
    assert threshold_links(weights, 0.3) == {(1, 0), (0, 2), (2, 2)}
    for least in (0.0, 1.1):
        with pytest.raises(Mistake, match=f"threshold is {least}; it must be above 0 and at most 1"):
            threshold_links(weights, least)


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [(3, 3, [0, 1, 2]), (3, 5, [0, 1, 1, 2, 2]), (5, 3, [0, 2, 4]), (4, 1, [0]), (1, 3, [0, 0, 0])],
)
def test_the_diagonal_runs_from_the_first_words_to_the_last(source: int, target: int, expected: list[int]) -> None:
    assert diagonal_links(source, target) == set(zip(expected, range(target), strict=True))


def test_each_target_word_links_to_its_largest_weight_unless_all_are_zero() -> None:
    assert argmax_links(np.array([[0.1, 0.7, 0.2], [0.0, 0.0, 0.0], [0.5, 0.2, 0.3]])) == {(1, 0), (0, 2)}


@pytest.mark.parametrize(("row", "later"), [("predicts", 0), ("reads", 1)])
@pytest.mark.parametrize(("layer", "head"), [(0, 2), (1, 0)])
def test_the_best_choice_is_the_head_that_was_made_to_align(row: PieceRow, later: int, layer: int, head: int) -> None:
    draw = np.random.default_rng(11)
    sizes = [(5, 3), (7, 5), (4, 6), (6, 4)]
    sources = [[f"▁{i}" for i in range(n)] for n, _ in sizes]
    targets = [[f"▁{i}" for i in range(n)] for _, n in sizes]
    gold, maps = [], []
    for n, m in sizes:
        true = draw.integers(n, size=m)
        weights = draw.dirichlet(np.ones(n + 1), size=(2, 3, m + 1))
        weights[layer, head] *= 1e-4
        weights[layer, head, np.arange(m) + later, true] = 1e-3
        maps.append(weights)
        gold.append(Alignment(*[frozenset((int(i), j) for j, i in enumerate(true))] * 2))
    found = rates_of_maps(maps, sources, targets, gold)
    assert len(found) == 2 * (1 + 2 + 2 * 3)
    choice = best(found)
    assert choice == (row, layer, head)
    assert found[choice] == (0, 1, 1)
    for each, of_each in found.items():
        words = [selected_word_map(*pair, each) for pair in zip(maps, sources, targets, strict=True)]
        assert rates([argmax_links(weights) for weights in words], gold) == of_each


def test_among_equal_choices_the_simplest_wins() -> None:
    assert best(rates_of_maps([np.full((2, 3, 2, 2), 0.5)], [["▁a"]], [["▁x"]], [GOLD[2]])) == ("predicts", None, None)


def test_a_choice_says_what_it_is() -> None:
    assert str(MapSelector("reads", None, None)) == "row that reads, mean of layers, mean of heads"
    assert str(MapSelector("predicts", 2, 3)) == "row that predicts, layer 2, head 3"


def test_choosing_without_maps_is_refused() -> None:
    with pytest.raises(Mistake, match="no attention maps"):
        rates_of_maps([], [], [], [])


@pytest.mark.parametrize(
    ("layers", "heads", "places"),
    [
        (1, 1, {(0, 0)}),
        (1, 2, {(0, None), (0, 0), (0, 1)}),
        (2, 1, {(None, None), (0, 0), (1, 0)}),
        (2, 2, {(None, None), (0, None), (0, 0), (0, 1), (1, None), (1, 0), (1, 1)}),
    ],
)
def test_one_layer_or_head_has_no_mean(layers: int, heads: int, places: set[tuple[int | None, int | None]]) -> None:
    found = rates_of_maps([np.full((layers, heads, 2, 2), 0.5)], [["▁a"]], [["▁x"]], [GOLD[2]])
    assert {(choice.layer, choice.head) for choice in found} == places
