"""Pairs of the embedded corpus with known alignments, and how links agree with them."""

from pathlib import Path

import numpy as np
import pytest

from nmt.config.direction import Direction
from nmt.errors import Mistake
from nmt.insight.known_alignments import agreement, aligned_pairs
from nmt.maps.links import MapSelector, argmax_links
from nmt.runs.load import LoadedRun, load_run

FORTH, BACK = Direction("en", "vi"), Direction("vi", "en")


@pytest.fixture
def trained(run: str) -> LoadedRun:
    return load_run(Path(run), "cpu")


def test_the_links_of_the_pairs_fit_their_words_in_both_directions() -> None:
    pairs = aligned_pairs(FORTH)
    assert len(pairs) == 12
    for pair in pairs:
        assert max(len(pair.source.split()), len(pair.target.split())) <= 11
        assert pair.gold.sure <= pair.gold.possible
        assert all(i < len(pair.source.split()) and j < len(pair.target.split()) for i, j in pair.gold.possible)
    for forth, back in zip(pairs, aligned_pairs(BACK), strict=True):
        assert (forth.source, forth.target) == (back.target, back.source)
        assert {(j, i) for i, j in forth.gold.possible} == back.gold.possible
    assert aligned_pairs(Direction("en", "de")) == ()


def test_a_guess_of_all_sure_links_has_no_error(trained: LoadedRun) -> None:
    pair = aligned_pairs(trained.direction)[0]
    found = agreement(trained, pair, MapSelector("predicts", 0, 0), sorted(pair.gold.sure))
    assert found.rates["guess"] == (0.0, 1.0, 1.0)
    assert found.weights.shape == (len(found.target_words), len(found.source_words))
    assert found.links["model"] == argmax_links(found.weights)
    sure, possible = found.gold
    model = found.links["model"]
    expected = 1 - (len(model & sure) + len(model & possible)) / (len(model) + len(sure))
    assert found.rates["model"].aer == pytest.approx(expected, rel=1e-15)


def test_the_mean_of_the_heads_is_the_mean_of_their_maps(trained: LoadedRun) -> None:
    pair = aligned_pairs(trained.direction)[1]
    heads = trained.model.sites["cross"][0].num_heads
    maps = [agreement(trained, pair, MapSelector("predicts", 0, head)).weights for head in range(heads)]
    mean = agreement(trained, pair, MapSelector("predicts", 0, None))
    np.testing.assert_allclose(mean.weights, np.mean(maps, axis=0), rtol=len(maps) * 2 * np.finfo(np.float32).eps)
    assert "guess" not in mean.rates


def test_what_does_not_exist_is_refused(trained: LoadedRun) -> None:
    pair = aligned_pairs(trained.direction)[0]
    with pytest.raises(Mistake, match="layer is 9; cross has"):
        agreement(trained, pair, MapSelector("predicts", 9, 0))
    with pytest.raises(Mistake, match="The link 0-99 does not fit"):
        agreement(trained, pair, MapSelector("predicts", 0, 0), [(0, 99)])
