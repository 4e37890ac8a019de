from pathlib import Path

import pytest
from matplotlib import image

from nmt.evaluation.score_chart import score_bars


def test_a_bar_for_each_system_grows_with_its_score(tmp_path: Path) -> None:
    score_bars(["một", "hai"], [(10.0, 9.0, 11.0), (30.0, 28.0, 31.0)], tmp_path / "a.png")
    picture = image.imread(tmp_path / "a.png")[:, :, :3]
    # Of the colour of bars: more red than green by far. The first rows of pixels are of the first bar.
    widths = ((picture[:, :, 0] - picture[:, :, 1]) > 0.3).sum(axis=1)
    filled = widths[widths > 0]
    assert filled[-1] > 2 * filled[0]


@pytest.mark.parametrize(("names", "scores"), [([], []), (["a"], []), (["a"], [(1.0, 1.0, 1.0)] * 2)])
def test_a_score_for_each_name_is_needed(
    tmp_path: Path, names: list[str], scores: list[tuple[float, float, float]]
) -> None:
    with pytest.raises(ValueError, match=f"{len(names)} names and {len(scores)} scores: give one of each"):
        score_bars(names, scores, tmp_path / "a.png")
