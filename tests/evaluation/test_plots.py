from pathlib import Path

import matplotlib
import numpy as np
import pytest
from matplotlib import image

from nmt.evaluation.plots import heat_map

VIETNAMESE = ["▁Những", "▁người", "▁trẻ", "▁ở", "▁Việt", "▁Nam", "▁ằẵặỹợ"]


def draw(path: Path, rows: int, columns: int, hot: tuple[int, int]) -> np.ndarray:
    weights = np.zeros((rows, columns))
    weights[hot] = 1
    heat_map(weights, ["a"] * columns, ["x"] * rows, path, "cross")
    return image.imread(path)[:, :, :3]


@pytest.mark.parametrize(("rows", "columns"), [(3, 3), (3, 59), (60, 53)])
def test_a_picture_grows_with_its_map(tmp_path: Path, rows: int, columns: int) -> None:
    height, width, _ = draw(tmp_path / "a.png", rows, columns, (0, 0)).shape
    assert height >= 0.2 * 160 * rows
    assert width >= 0.2 * 160 * columns


def test_source_runs_to_the_right_and_target_down(tmp_path: Path) -> None:
    """The dark cell lies where row and column say, and is square."""
    centres = {}
    for hot in ((0, 0), (0, 6), (4, 0)):
        picture = draw(tmp_path / "a.png", 5, 7, hot)[:, : -160 // 2]
        dark = (picture.max(-1) < 0.3) & (picture[:, :, 2] > picture[:, :, 1] + 0.05)
        y, x = dark.nonzero()
        centres[hot] = (float(np.median(y)), float(np.median(x)))
    (y, x), (y_right, x_right), (y_down, x_down) = centres.values()
    assert y_right == pytest.approx(y, abs=2)
    assert x_down == pytest.approx(x, abs=2)
    assert (x_right - x) / 6 == pytest.approx((y_down - y) / 4, abs=1)
    assert x_right > x


def test_every_vietnamese_letter_and_formula_signs_are_drawn_without_a_warning(tmp_path: Path) -> None:
    before = dict(matplotlib.rcParams)
    heat_map(np.eye(7), VIETNAMESE, ["$x^", "$_{", "\\", "%", "$1$", "#", "_"], tmp_path / "a.png", "100 $ và 5 $_")
    assert dict(matplotlib.rcParams) == before


def test_a_map_of_zeros_is_drawn(tmp_path: Path) -> None:
    heat_map(np.zeros((2, 3)), ["a"] * 3, ["x"] * 2, tmp_path / "a.png", "")
    assert (tmp_path / "a.png").stat().st_size > 0


@pytest.mark.parametrize("shape", [(3, 2), (0, 2)])
def test_labels_must_fit(tmp_path: Path, shape: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match=r"A map of shape .* does not fit"):
        heat_map(np.zeros(shape), ["a"] * 3, ["x"] * shape[0], tmp_path / "a.png", "")
