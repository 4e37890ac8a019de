from pathlib import Path

import numpy as np
import pytest

from nmt.maps.attention_map import AttentionMap, LocalWindow, SentenceMaps, site_labels
from nmt.maps.map_files import write_maps
from scripts.studies.check_maps import check, check_map, main

LABELS = site_labels(["▁a", "▁b", "▁c"], ["▁x", "▁y"])
DRAW = np.random.default_rng(1)


def weights_of(site: str, rows: int, columns: int) -> np.ndarray:
    weights = DRAW.random((2, 3, rows, columns)) + 0.1
    if site == "decoder_self":
        weights = np.tril(weights)
    return weights / weights.sum(-1, keepdims=True)


@pytest.mark.parametrize(("site", "rows", "columns"), [("cross", 3, 4), ("decoder_self", 3, 3), ("encoder_self", 4, 4)])
def test_valid_maps_pass_and_others_do_not(site: str, rows: int, columns: int) -> None:
    weights = weights_of(site, rows, columns)
    found = check_map(AttentionMap(site, weights, *LABELS[site]))
    assert found.valid
    assert (found.maps, found.weights) == (6, 6 * rows * columns)
    assert not check_map(AttentionMap(site, weights * 0.99, *LABELS[site])).valid
    assert check_map(AttentionMap(site, weights * 0, *LABELS[site])).empty == 6


def test_weight_on_the_future_and_outside_of_a_window_is_counted() -> None:
    future = np.full((1, 1, 3, 3), 1 / 3)
    assert check_map(AttentionMap("decoder_self", future, *LABELS["decoder_self"])).blocked == 3
    weights = weights_of("cross", 3, 4)
    allowed = np.ones(weights.shape, dtype=bool)
    allowed[..., 0] = False
    window = LocalWindow(np.zeros((2, 3, 3)), allowed, None)
    assert check_map(AttentionMap("cross", weights, *LABELS["cross"], window)).blocked == 2 * 3 * 3


@pytest.mark.parametrize("renormalized", [False, True])
def test_the_share_of_the_gaussian_is_not_missed(renormalized: bool) -> None:
    weights, prior = weights_of("cross", 3, 4), DRAW.random((2, 3, 3, 4)) * 0.8 + 0.1
    window = LocalWindow(np.zeros((2, 3, 3)), np.ones(weights.shape, dtype=bool), prior)
    shown = weights if renormalized else weights * prior
    item = AttentionMap("cross", shown, *LABELS["cross"], window)
    assert check_map(item, renormalized).valid
    assert not check_map(item, not renormalized).valid


def test_the_worst_of_all_sentences_counts() -> None:
    maps = [AttentionMap("cross", weights_of("cross", 3, 4) * scale, *LABELS["cross"]) for scale in (1, 0.9)]
    sentences = [SentenceMaps(line, 1, ["▁a", "▁b", "▁c"], ["▁x", "▁y"], [item]) for line, item in enumerate(maps, 1)]
    found = check(sentences)["cross"]
    assert found.maps == 12
    assert found.row_sum_error == pytest.approx(0.1)


def test_a_weight_that_is_no_number_is_not_lost_among_the_others() -> None:
    first, second = (weights_of("cross", 3, 4) for _ in range(2))
    first[0, 0, 0, 0] = np.nan
    maps = [AttentionMap("cross", weights, *LABELS["cross"]) for weights in (first, second)]
    sentences = [SentenceMaps(line, 1, ["▁a", "▁b", "▁c"], ["▁x", "▁y"], [item]) for line, item in enumerate(maps, 1)]
    assert not check(sentences)["cross"].valid


def test_nothing_to_check_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_maps(tmp_path, [], {}, {"lines": 1})
    monkeypatch.setattr("sys.argv", ["check_maps.py", str(tmp_path)])
    assert main() == 1
    assert capsys.readouterr().out == "no maps to check\n"
