import re
import warnings
from functools import partial
from itertools import product
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from grids import SOAK
from matplotlib import image

from nmt.errors import Mistake
from nmt.maps.plots import Look, check_look, heat_map, heat_map_grid, installed_fonts, missing_glyphs

# Fewer pixels than the default, to save time.
look_of = partial(Look, dpi=160)
VIETNAMESE = ["▁Những", "▁người", "▁trẻ", "▁ở", "▁Việt", "▁Nam", "▁ằẵặỹợ"]


def draw(path: Path, rows: int, columns: int, hot: tuple[int, int]) -> np.ndarray:
    weights = np.zeros((rows, columns))
    weights[hot] = 1
    heat_map(weights, ["a"] * columns, ["x"] * rows, look_of("cross")).save(path)
    return image.imread(path)[:, :, :3]


@pytest.mark.parametrize(("rows", "columns"), [(3, 3), (3, 59), (60, 53)])
def test_a_picture_grows_with_its_map(tmp_path: Path, rows: int, columns: int) -> None:
    height, width, _ = draw(tmp_path / "a.png", rows, columns, (0, 0)).shape
    assert height >= 0.2 * 160 * rows
    assert width >= 0.2 * 160 * columns


def test_source_runs_to_the_right_and_target_down(tmp_path: Path) -> None:
    """The dark cell is at its row and column, and cells are square."""
    centers = {}
    for hot in ((0, 0), (0, 6), (4, 0)):
        picture = draw(tmp_path / "a.png", 5, 7, hot)[:, : -160 // 2]
        dark = (picture.max(-1) < 0.3) & (picture[:, :, 2] > picture[:, :, 1] + 0.05)
        y, x = dark.nonzero()
        centers[hot] = (float(np.median(y)), float(np.median(x)))
    (y, x), (y_right, x_right), (y_down, x_down) = centers.values()
    assert y_right == pytest.approx(y, abs=2)
    assert x_down == pytest.approx(x, abs=2)
    assert (x_right - x) / 6 == pytest.approx((y_down - y) / 4, abs=1)
    assert x_right > x


def test_vietnamese_letters_and_formula_signs_are_drawn_without_a_warning(tmp_path: Path) -> None:
    before = dict(matplotlib.rcParams)
    signs = ["$x^", "$_{", "\\", "%", "$1$", "#", "_"]
    heat_map(np.eye(7), VIETNAMESE, signs, look_of("100 $ và 5 $_")).save(tmp_path / "a.png")
    assert dict(matplotlib.rcParams) == before


def test_missing_letters_are_found_and_drawn_without_a_warning_for_each(tmp_path: Path) -> None:
    signs = ["北京", "🜀", "đại"]
    fonts = look_of().fonts
    assert fonts[0] == "DejaVu Sans"
    assert set(fonts) <= installed_fonts()
    assert missing_glyphs(["đại học"], fonts) == set()
    assert "北" in missing_glyphs(signs, ["DejaVu Sans"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        heat_map(np.eye(3), signs, signs, look_of("北")).save(tmp_path / "a.png")


def test_a_picture_has_the_resolution_and_the_colors_asked_for(tmp_path: Path) -> None:
    weights = np.eye(4)
    for name, look in {"a": Look(), "b": Look(dpi=150), "c": Look(palette="Blues")}.items():
        heat_map(weights, ["a"] * 4, ["x"] * 4, look).save(tmp_path / f"{name}.png")
    default, half, blue = (image.imread(tmp_path / f"{name}.png")[:, :, :3] for name in "abc")
    assert half.shape[1] == pytest.approx(default.shape[1] / 2, rel=0.02)
    dark = blue[(np.ptp(blue, axis=-1) > 0.3)]
    assert (dark.argmax(-1) == 2).all()


@pytest.mark.parametrize(
    ("font", "palette", "message"),
    [("DejaVu Sanz", None, r"Unknown font .* 'DejaVu Sans'"), ("DejaVu Sans", "Blue", r"Unknown palette .* 'Blues'")],
)
def test_an_unknown_font_or_palette_is_refused(font: str, palette: str | None, message: str) -> None:
    with pytest.raises(Mistake, match=message):
        check_look(font, palette)


def test_a_map_of_zeros_is_drawn(tmp_path: Path) -> None:
    heat_map(np.zeros((2, 3)), ["a"] * 3, ["x"] * 2, look_of()).save(tmp_path / "a.png")
    assert (tmp_path / "a.png").stat().st_size > 0


def test_labels_must_fit() -> None:
    with pytest.raises(ValueError, match=r"A map of shape \(3, 2\) does not fit 3 row and 3 column labels"):
        heat_map(np.zeros((3, 2)), ["a"] * 3, ["x"] * 3, look_of())


def test_an_empty_map_is_refused_with_the_remedy() -> None:
    """Without BOS and EOS, nothing may be left of a side."""
    with pytest.raises(Mistake, match="The map has only <s> and </s> on one side, so nothing is left of it: use spec"):
        heat_map(np.zeros((0, 3)), ["a"] * 3, [], look_of())


@pytest.mark.parametrize("kind", ["png", "svg", "pdf"])
def test_the_extension_chooses_the_format_and_the_bytes_are_reproducible(tmp_path: Path, kind: str) -> None:
    files = [tmp_path / f"{name}.{kind}" for name in "ab"]
    for file in files:
        heat_map(np.eye(7), VIETNAMESE, VIETNAMESE, look_of("cross")).save(file)
    heads = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}
    assert files[0].read_bytes().startswith(heads[kind])
    assert files[0].read_bytes() == files[1].read_bytes()


def test_a_pdf_embeds_truetype_letters(tmp_path: Path) -> None:
    heat_map(np.eye(7), VIETNAMESE, VIETNAMESE, look_of("cross")).save(tmp_path / "a.pdf")
    content = (tmp_path / "a.pdf").read_bytes()
    assert b"/CIDFontType2" in content
    assert b"/Type3" not in content


def test_the_labels_of_an_svg_are_text(tmp_path: Path) -> None:
    heat_map(np.eye(7), VIETNAMESE, VIETNAMESE, look_of("cross")).save(tmp_path / "a.svg")
    texts = re.findall(r"<text [^>]*>([^<]*)</text>", (tmp_path / "a.svg").read_text(encoding="utf-8"))
    for label in VIETNAMESE:
        assert texts.count(label) == 2 * VIETNAMESE.count(label)


def page_width(path: Path) -> float:
    box = re.search(rb"/MediaBox \[ ?0 0 ([0-9.]+) ", path.read_bytes())
    assert box is not None
    return float(box[1]) / 72


@pytest.mark.parametrize(
    ("width", "tokens"), list(product((2.2, 3.3, 6.9), (3, 13))) if SOAK else [(2.2, 13), (3.3, 3), (6.9, 3)]
)
def test_a_picture_for_print_is_as_wide_as_asked_for(tmp_path: Path, width: float, tokens: int) -> None:
    """Exactly, because scaling it to the page would change its letters of 6 points."""
    words = ["word"] * tokens
    heat_map(np.eye(tokens), words, words, look_of(width=width)).save(tmp_path / "a.pdf")
    assert page_width(tmp_path / "a.pdf") == pytest.approx(width, abs=0.005)
    heat_map_grid(np.eye(tokens)[None, None].repeat(3, 1), words, words, look_of(width=width)).save(tmp_path / "a.pdf")
    assert page_width(tmp_path / "a.pdf") == pytest.approx(width, abs=0.005)


@pytest.mark.parametrize("width", [None, 3.3])
@pytest.mark.parametrize("word", ["ab", "a_very_long_word_indeed"])
def test_nothing_is_cut_off_at_the_edges(tmp_path: Path, width: float | None, word: str) -> None:
    """A white rim surrounds labels, names and the color bar."""
    for draw_it, weights in ((heat_map, np.eye(7)), (heat_map_grid, np.eye(7)[None, None].repeat(2, 0))):
        look = look_of("cross" if width is None else "", width=width)
        draw_it(weights, [word] * 7, [word] * 7, look).save(tmp_path / "a.png")
        picture = image.imread(tmp_path / "a.png")[:, :, :3]
        rim = np.concatenate([picture[[0, -1]].reshape(-1, 3), picture[:, [0, -1]].reshape(-1, 3)])
        assert rim.min() > 0.99


@pytest.mark.parametrize("place", [0, 6, 15])
def test_one_long_label_is_not_cut_off(tmp_path: Path, place: int) -> None:
    words = ["word"] * 16
    words[place] = "https://example.org/" + 40 * "x"
    for draw_it, weights in ((heat_map, np.eye(16)), (heat_map_grid, np.eye(16)[None, None].repeat(2, 0))):
        draw_it(weights, words, ["a"] * 16, look_of(width=3.9)).save(tmp_path / "a.png")
        picture = image.imread(tmp_path / "a.png")[:, :, :3]
        assert np.concatenate([picture[[0, -1]].reshape(-1, 3), picture[:, [0, -1]].reshape(-1, 3)]).min() > 0.99


def test_labels_that_leave_no_room_for_the_map_are_refused(tmp_path: Path) -> None:
    with pytest.raises(Mistake, match=r"picture of 3 columns does not fit into 2 inches .* use at least \d"):
        heat_map(np.eye(3), ["a"] * 3, ["x" * 90] * 3, look_of(width=2)).save(tmp_path / "a.pdf")


def test_pictures_with_the_same_max_weight_have_the_same_color_scale(tmp_path: Path) -> None:
    """Half of max_weight is half dark, whatever else is in the picture."""
    pictures = []
    for others in (0.0, 0.5):
        weights = np.full((5, 5), 0.25)
        weights[4, 4] = others
        heat_map(weights, ["a"] * 5, ["x"] * 5, look_of(max_weight=0.5)).save(tmp_path / "a.png")
        pictures.append(image.imread(tmp_path / "a.png"))
    assert pictures[0].shape == pictures[1].shape
    differing = np.abs(pictures[0] - pictures[1]).max(-1) > 0.1
    assert 0 < differing.mean() < 0.05


def test_a_width_that_is_too_small_is_refused_with_one_that_fits(tmp_path: Path) -> None:
    with pytest.raises(
        Mistake, match=r"picture of 60 columns does not fit into 3.3 inches .* use at least 5"
    ) as refusal:
        heat_map(np.eye(60), ["a"] * 60, ["b"] * 60, look_of(width=3.3))
    least = float(str(refusal.value).split()[-1].rstrip("."))
    heat_map(np.eye(60), ["a"] * 60, ["b"] * 60, look_of(width=least)).save(tmp_path / "a.pdf")


@pytest.mark.parametrize(
    ("layers", "heads", "rows", "columns"),
    [(1, 1, 1, 1), (2, 3, 5, 7), pytest.param(6, 8, 11, 13, marks=pytest.mark.soak)],
)
def test_a_grid_has_a_map_for_each_head(tmp_path: Path, layers: int, heads: int, rows: int, columns: int) -> None:
    weights = np.zeros((layers, heads, rows, columns))
    look = Look("cross", max_weight=1, dpi=80)
    heat_map_grid(weights, ["nguồn"] * columns, ["đích"] * rows, look).save(tmp_path / "a.png")
    empty = image.imread(tmp_path / "a.png")[:, :, :3]
    weights[-1, -1, -1, -1] = 1
    heat_map_grid(weights, ["nguồn"] * columns, ["đích"] * rows, look).save(tmp_path / "a.png")
    one = image.imread(tmp_path / "a.png")[:, :, :3]
    y, x = (np.abs(one - empty).max(-1) > 0.5).nonzero()
    assert y.min() > (layers - 1) / layers * 0.8 * one.shape[0] or layers == 1
    assert x.min() > (heads - 1) / heads * 0.8 * one.shape[1] or heads == 1
    assert len(y) < 0.5 * one.shape[0] * one.shape[1] / (layers * heads)


def test_a_grid_that_is_too_narrow_for_labels_has_none_and_one_too_narrow_for_cells_is_refused(tmp_path: Path) -> None:
    columns, rows = ["word"] * 29, ["word"] * 5
    weights = np.eye(5, 29)[None, None].repeat(2, 1)
    heat_map_grid(weights, columns, rows, look_of(width=1.75)).save(tmp_path / "a.pdf")
    assert page_width(tmp_path / "a.pdf") == pytest.approx(1.75, abs=0.005)
    with pytest.raises(Mistake, match=r"2 maps of 29 columns side by side do not fit into 0\.38 inches") as refusal:
        heat_map_grid(weights, columns, rows, look_of(width=0.38))
    least = float(str(refusal.value).split()[-1].rstrip("."))
    heat_map_grid(weights, columns, rows, look_of(width=least)).save(tmp_path / "b.pdf")


@pytest.mark.parametrize(("heads", "columns"), [(1, 17), pytest.param(5, 5, marks=pytest.mark.soak)])
def test_the_width_that_a_refusal_suggests_is_accepted(heads: int, columns: int) -> None:
    words, weights = ["word"] * columns, np.eye(columns)[None, None].repeat(heads, 1)
    with pytest.raises(Mistake, match="use at least") as refusal:
        heat_map_grid(weights, words, words, look_of(width=0.3))
    heat_map_grid(weights, words, words, look_of(width=float(str(refusal.value).split()[-1].rstrip("."))))


def test_the_labels_of_a_grid_must_fit() -> None:
    with pytest.raises(ValueError, match=r"A map of shape \(4, 5\) does not fit 5 row and 4 column"):
        heat_map_grid(np.zeros((2, 3, 4, 5)), ["a"] * 4, ["x"] * 5, look_of())
