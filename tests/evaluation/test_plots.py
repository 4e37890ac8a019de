import re
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from matplotlib import image

from nmt.evaluation.plots import heat_map, heat_map_grid

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


@pytest.mark.parametrize("kind", ["png", "svg", "pdf"])
def test_the_extension_is_the_format_and_the_bytes_are_the_same_each_time(tmp_path: Path, kind: str) -> None:
    files = [tmp_path / f"{name}.{kind}" for name in "ab"]
    for file in files:
        heat_map(np.eye(7), VIETNAMESE, VIETNAMESE, file, "cross")
    heads = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}
    assert files[0].read_bytes().startswith(heads[kind])
    assert files[0].read_bytes() == files[1].read_bytes()


def test_a_pdf_embeds_truetype_letters(tmp_path: Path) -> None:
    heat_map(np.eye(7), VIETNAMESE, VIETNAMESE, tmp_path / "a.pdf", "cross")
    content = (tmp_path / "a.pdf").read_bytes()
    assert b"/CIDFontType2" in content
    assert b"/Type3" not in content


@pytest.mark.parametrize("width", [2.2, 3.3, 6.9])
def test_a_picture_for_print_is_as_wide_as_asked_for(tmp_path: Path, width: float) -> None:
    heat_map(np.eye(13), ["word"] * 13, ["longest"] * 13, tmp_path / "a.pdf", "", width)
    box = re.search(rb"/MediaBox \[ ?0 0 ([0-9.]+) ", (tmp_path / "a.pdf").read_bytes())
    assert box is not None
    drawn = float(box[1]) / 72
    assert drawn <= width
    assert drawn > 0.8 * width or drawn > 13 * 0.34


def test_a_width_that_is_too_small_says_what_would_do(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"picture of 60 columns does not fit into 3.3 inches .* give at least 5"):
        heat_map(np.eye(60), ["a"] * 60, ["b"] * 60, tmp_path / "a.pdf", "", 3.3)


@pytest.mark.parametrize(("layers", "heads", "rows", "columns"), [(1, 1, 1, 1), (2, 3, 5, 7), (6, 8, 11, 13)])
def test_a_grid_has_a_map_for_each_head(tmp_path: Path, layers: int, heads: int, rows: int, columns: int) -> None:
    weights = np.zeros((layers, heads, rows, columns))
    heat_map_grid(weights, ["nguồn"] * columns, ["đích"] * rows, tmp_path / "a.png", "cross")
    empty = image.imread(tmp_path / "a.png")[:, :, :3]
    weights[-1, -1, -1, -1] = 1
    heat_map_grid(weights, ["nguồn"] * columns, ["đích"] * rows, tmp_path / "a.png", "cross")
    one = image.imread(tmp_path / "a.png")[:, :, :3]
    y, x = (np.abs(one - empty).max(-1) > 0.5).nonzero()
    assert y.min() > (layers - 1) / layers * 0.8 * one.shape[0] or layers == 1
    assert x.min() > (heads - 1) / heads * 0.8 * one.shape[1] or heads == 1
    assert len(y) < 0.5 * one.shape[0] * one.shape[1] / (layers * heads)


def test_the_labels_of_a_grid_must_fit(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"Maps of shape \(4, 5\) do not fit 5 target and 4 source"):
        heat_map_grid(np.zeros((2, 3, 4, 5)), ["a"] * 4, ["x"] * 5, tmp_path / "a.png", "")
