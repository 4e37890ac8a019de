import math

import numpy as np
import pytest

from nmt.errors import Mistake
from nmt.maps.attention_map import AttentionMap, EarlierPair, LocalWindow, SentenceMaps, site_labels
from nmt.maps.diagnostics import Measures, head_entropies, measure, per_head, per_sentence, worst_first

SOURCE, TARGET = ["▁a", "▁b", "."], ["▁x", "▁y", "▁z"]
LABELS = site_labels(SOURCE, TARGET)


def of(*rows: list[float], site: str = "cross", local: LocalWindow | None = None) -> Measures:
    """The measures of one map with one layer and head."""
    item = AttentionMap(site, np.array([[rows]], dtype=float), *LABELS[site], local)
    return Measures(*(float(values[0, 0]) for values in measure(item)))


def test_a_diagonal_is_sharp_monotonic_and_complete() -> None:
    found = of(*np.eye(4).tolist())
    assert found.entropy == found.uniformity == found.distance == 0
    assert found.monotonicity == found.coverage == 1
    assert found.special == found.punctuation == 0.25
    assert found.variation == pytest.approx(0.75)


def test_equal_weights_are_uniform() -> None:
    found = of(*[[0.25] * 4] * 4)
    assert found.entropy == pytest.approx(math.log(4))
    assert found.uniformity == pytest.approx(1)
    assert found.variation == 0
    # |s - t| / 3 over 16 cells: 0 four times, 1/3 six, 2/3 four, 1 twice.
    assert found.distance == pytest.approx((6 / 3 + 4 * 2 / 3 + 2) / 16)


def test_measures_by_hand() -> None:
    found = of([0.5, 0.5, 0, 0], [0, 0, 0, 1], [1, 0, 0, 0], [0, 0, 1, 0])
    assert found.entropy == pytest.approx(math.log(2) / 4)
    assert found.monotonicity == pytest.approx(2 / 3), "one step of three goes back"
    assert found.coverage == pytest.approx((1 + 0.5 + 1) / 3)
    assert (found.special, found.punctuation) == (0.25, 0.25)


def test_uniformity_of_decoder_self_counts_only_earlier_pieces() -> None:
    rows = [[1, 0, 0, 0], [1 / 2, 1 / 2, 0, 0], [1 / 3] * 3 + [0], [1 / 4] * 4]
    assert of(*rows, site="decoder_self").uniformity == pytest.approx(1)


def test_uniformity_counts_only_the_local_window_and_rows_are_renormalized() -> None:
    weights = [[0.3, 0.3, 0, 0], [0, 0.2, 0.2, 0], [0, 0, 0.1, 0.1], [0, 0, 0.5, 0.5]]
    allowed = np.array([[weights]]) > 0
    found = of(*weights, local=LocalWindow(np.zeros((1, 1, 4)), allowed, None))
    assert found.uniformity == pytest.approx(1)
    assert found.entropy == pytest.approx(math.log(2))
    assert found.special == pytest.approx(0.25)


def test_rows_without_weight_are_left_out() -> None:
    found = of([0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0])
    assert found.entropy == 0
    assert found.distance == pytest.approx(0)
    assert np.isfinite(list(found)).all()


@pytest.mark.parametrize(
    ("rows", "dead"),
    [
        ([[0, 0, 0, 1]] * 4, "sink"),
        ([[0.25] * 4] * 4, "uniform"),
        ([[0.7, 0.1, 0.1, 0.1]] * 4, "constant"),
        (np.eye(4).tolist(), ""),
    ],
)
def test_dead_heads_have_a_reason(rows: list[list[float]], dead: str) -> None:
    maps = [AttentionMap("cross", np.array([[rows]], dtype=float), *LABELS["cross"])]
    found = per_sentence([SentenceMaps(3, 2, SOURCE, TARGET, maps)])
    assert [(row.line, row.rank, row.site, row.layer, row.head, row.dead) for row in found] == [
        (3, 2, "cross", 0, 0, dead)
    ]


def test_per_head_averages_over_the_sentences() -> None:
    draw = np.random.default_rng(2)
    sentences = [
        SentenceMaps(
            line, 1, SOURCE, TARGET, [AttentionMap("cross", draw.dirichlet([1] * 4, (2, 3, 4)), *LABELS["cross"])]
        )
        for line in (1, 2)
    ]
    rows = per_sentence(sentences)
    assert len(rows) == 2 * 2 * 3
    heads = per_head(rows)
    assert [(row.layer, row.head) for row in heads] == [(layer, head) for layer in range(2) for head in range(3)]
    assert heads[1].values["entropy"] == pytest.approx((rows[1].values["entropy"] + rows[1 + 6].values["entropy"]) / 2)


def test_the_worst_comes_first() -> None:
    maps = np.full((1, 1, 4, 4), 0.25), np.eye(4)[None, None]
    rows = per_sentence(
        [
            SentenceMaps(line, 1, SOURCE, TARGET, [AttentionMap("cross", weights, *LABELS["cross"])])
            for line, weights in enumerate(maps, start=1)
        ]
    )
    assert [row.line for row in worst_first(rows, "entropy")] == [1, 2]
    assert [row.line for row in worst_first(rows, "variation")] == [1, 2]
    assert [row.line for row in worst_first(rows[::-1], "special")] == [2, 1], "ties stay in order"
    with pytest.raises(Mistake, match=r"Unknown measure 'bleu'\. Available: coverage, distance, entropy"):
        worst_first(rows, "bleu")


def test_entropy_is_the_mean_over_rows_of_normalized_weights_in_nats() -> None:
    weights = np.zeros((1, 4, 3, 4), dtype=np.float32)
    weights[0, 0] = 0.25
    weights[0, 1, :, 2] = 0.5
    weights[0, 2, 0] = 0.1
    weights[0, 2, 1, 0] = 1
    entropies = head_entropies(weights)
    np.testing.assert_allclose(entropies[0, :3], [np.log(4), 0, np.log(4) / 2], atol=1e-6)
    assert np.isnan(entropies[0, 3])


def test_a_map_of_one_column_is_not_dead() -> None:
    """A row that sees a single earlier sentence has no choice, whatever the query is."""
    earlier = [EarlierPair(["▁a"], ["▁x"])]
    labels = site_labels(SOURCE, TARGET, earlier)["decoder_sentences"]
    item = AttentionMap("decoder_sentences", np.ones((1, 1, 4, 1)), *labels)
    [row] = per_sentence([SentenceMaps(1, 1, SOURCE, TARGET, [item], earlier=earlier)])
    assert math.isnan(row.values["variation"])
    assert math.isnan(row.values["uniformity"])
    assert row.dead == ""
