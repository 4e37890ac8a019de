import warnings
from pathlib import Path

import pytest
from matplotlib import image

from nmt.evaluation.score_chart import distinct_labels, score_bars


def test_every_system_has_a_bar_that_grows_with_its_score(tmp_path: Path) -> None:
    score_bars(["một", "hai"], [(10.0, 9.0, 11.0), (30.0, 28.0, 31.0)], tmp_path / "a.png")
    picture = image.imread(tmp_path / "a.png")[:, :, :3]
    # Of the colour of bars: more red than green by far. The first rows of pixels are of the first bar.
    widths = ((picture[:, :, 0] - picture[:, :, 1]) > 0.3).sum(axis=1)
    filled = widths[widths > 0]
    assert filled[-1] > 2 * filled[0]


def test_long_names_leave_room_for_the_bars(tmp_path: Path) -> None:
    names = [f"runs/{letter * 200}" for letter in "ab"]
    assert distinct_labels(names)[0] == f"runs/{'a' * 18}…{'a' * 24}"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        score_bars(names, [(30.0, 28.0, 31.0)] * 2, tmp_path / "a.png")
    picture = image.imread(tmp_path / "a.png")[:, :, :3]
    assert ((picture[:, :, 0] - picture[:, :, 1]) > 0.3).any(axis=0).mean() > 0.3


def test_shortened_names_stay_different() -> None:
    path = "runs/iwslt15_en-vi/transformer_{}dot_global_softmax/seed1"
    short = distinct_labels(["runs/a", path.format(""), path.format("scaled_")])
    assert short[0] == "runs/a"
    assert [name[:11] for name in short[1:]] == ["2: runs/iws", "3: runs/iws"]


@pytest.mark.parametrize(("names", "scores"), [([], []), (["a"], []), (["a"], [(1.0, 1.0, 1.0)] * 2)])
def test_every_name_needs_a_score(tmp_path: Path, names: list[str], scores: list[tuple[float, float, float]]) -> None:
    with pytest.raises(ValueError, match=f"{len(names)} names and {len(scores)} scores; every system needs one"):
        score_bars(names, scores, tmp_path / "a.png")
