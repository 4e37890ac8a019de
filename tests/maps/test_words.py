import numpy as np
import pytest

from nmt.maps.attention_map import AttentionMap, site_labels
from nmt.maps.words import PIECE_ROWS, labeled, merge_pieces, spaced, word_ids, word_map

SOURCE = ["▁red", "▁ca", "t", "s", "."]
TARGET = ["▁mè", "o", "▁đỏ"]


def weights() -> np.ndarray:
    return np.random.default_rng(5).dirichlet(np.ones(6), size=(2, 3, 4))


def test_a_word_has_its_pieces_and_the_punctuation_after_it() -> None:
    assert merge_pieces(SOURCE) == [(0, 1), (1, 5)]
    assert merge_pieces(["▁", "<0xF0>", "<0x9F>", "▁a"]) == [(0, 3), (3, 4)]
    assert merge_pieces([]) == []


def test_word_maps_by_hand() -> None:
    rows = np.array(
        [[0.1, 0.2, 0.3, 0.0, 0.0, 0.4], [0.5, 0.1, 0.1, 0.1, 0.2, 0.0], [0.0, 0.0, 0.0, 0.0, 1.0, 0.0], [1] + [0] * 5]
    )
    np.testing.assert_allclose(word_map(rows, SOURCE, TARGET, "predicts"), [[0.3, 0.5], [0.0, 1.0]])
    np.testing.assert_allclose(word_map(rows, SOURCE, TARGET, "reads"), [[0.25, 0.75], [1.0, 0.0]])


def test_a_row_keeps_its_weight_on_words() -> None:
    for start, row in enumerate(PIECE_ROWS):
        kept = weights()[:, :, start : start + 3, :5].sum(-1)
        merged = word_map(weights(), SOURCE, TARGET, row).sum(-1)
        np.testing.assert_allclose(merged[..., 0], kept[..., :2].mean(-1))
        np.testing.assert_allclose(merged[..., 1], kept[..., 2])


def test_one_piece_words_change_nothing() -> None:
    source, target = [f"▁{i}" for i in range(5)], [f"▁{i}" for i in range(3)]
    np.testing.assert_allclose(word_map(weights(), source, target, "predicts"), weights()[:, :, :3, :5])
    np.testing.assert_allclose(word_map(weights(), source, target, "reads"), weights()[:, :, 1:, :5])


def test_a_stack_is_merged_map_by_map() -> None:
    stack = word_map(weights(), SOURCE, TARGET, "reads")
    np.testing.assert_allclose(stack[1, 2], word_map(weights()[1, 2], SOURCE, TARGET, "reads"))


def test_another_shape_is_refused() -> None:
    with pytest.raises(ValueError, match="4 rows and 6 columns does not fit 2 target and 5 source"):
        word_map(weights(), SOURCE, TARGET[:2], "predicts")


def cross(rows: int, columns: int) -> AttentionMap:
    weights = np.random.default_rng(3).dirichlet(np.ones(columns), (2, 3, rows))
    return AttentionMap("cross", weights, *site_labels(["▁a", "b", "▁c"], ["▁x", "▁y", "z", "w"])["cross"])


def test_words_sum_their_columns_and_average_their_rows() -> None:
    item = cross(5, 4)
    shown = labeled(item, words=True)
    assert (shown.rows, shown.columns) == (["x", "yzw", "</s>"], ["ab", "c", "</s>"])
    np.testing.assert_allclose(shown.weights.sum(-1), 1)
    by_hand = item.weights[1, 2, 1:4, :2].sum(-1).mean()
    assert shown.weights[1, 2, 1, 0] == pytest.approx(by_hand)


def test_without_special_pieces_the_words_of_the_user_stay() -> None:
    """A word such as <s> is spelled with several pieces; only the pieces BOS and EOS themselves are special."""
    source, target = ["▁<", "s>", "▁a"], ["▁</", "s", ">"]
    item = AttentionMap("cross", np.arange(16.0).reshape(1, 1, 4, 4), *site_labels(source, target)["cross"])
    pieces = labeled(item, special=False)
    assert (pieces.rows, pieces.columns) == (target, source)
    np.testing.assert_array_equal(pieces.weights, item.weights[..., :3, :3])
    words = labeled(item, words=True, special=False)
    assert (words.rows, words.columns) == (["</s>"], ["<s>", "a"])
    whole = labeled(item, words=True)
    assert (whole.rows, whole.columns) == (["</s>", "</s>"], ["<s>", "a", "</s>"])
    np.testing.assert_array_equal(words.weights, whole.weights[..., :1, :2])


def test_rows_may_be_labeled_by_what_they_read() -> None:
    item = cross(5, 4)
    assert labeled(item, "reads").rows == ["<s>", "▁x", "▁y", "z", "w"]
    shown = labeled(item, "reads", words=True)
    assert shown.rows == ["<s>", "x", "yzw"]
    expected = item.weights[0, 1, 2:5].mean(0)
    np.testing.assert_allclose(shown.weights[0, 1, 2], [expected[:2].sum(), expected[2], expected[3]])


def test_without_words_the_map_is_unchanged() -> None:
    item = cross(5, 4)
    shown = labeled(item)
    assert shown.weights is item.weights
    assert (shown.rows, shown.columns) == (item.outputs, item.columns)


def test_word_ids_number_the_words() -> None:
    assert word_ids(["▁a", "b", "▁c", "."]) == [0, 0, 1, 1]
    assert word_ids([]) == []


def test_spaced_words_are_the_words_that_alignments_count() -> None:
    pieces = ["▁a", "b", "▁c", ".", "<0xC4>", "<0x90>"]
    assert spaced(pieces) == "ab c.Đ"
    assert len(spaced(pieces).split()) == word_ids(pieces)[-1] + 1


@pytest.mark.parametrize("pieces", [["▁a", "<0x0A>", "b", "▁c"], ["▁", "▁x"], ["▁a", "<0x20>", "b"], ["▁\u2028", "▁y"]])
def test_white_space_in_a_word_does_not_split_it(pieces: list[str]) -> None:
    assert len(spaced(pieces).split()) == word_ids(pieces)[-1] + 1
    assert len(spaced(pieces).splitlines()) == 1


def test_bos_and_eos_are_words_of_their_own() -> None:
    assert merge_pieces(["<s>", "▁a", "b", "</s>"]) == [(0, 1), (1, 3), (3, 4)]
    assert merge_pieces(["<s>", "b", "</s>"]) == [(0, 1), (1, 2), (2, 3)]
