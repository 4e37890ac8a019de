"""Draws pictures of attention maps from arrays."""

import math
import textwrap
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from matplotlib import colormaps, font_manager, rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.ft2font import FT2Font
from matplotlib.image import AxesImage
from matplotlib.transforms import Bbox
from PIL import Image

from nmt.config.messages import unknown
from nmt.errors import Mistake
from nmt.files import atomic_write

# Comes with matplotlib and covers all Vietnamese letters.
FONT = "DejaVu Sans"
# Tried, if installed, for letters that the font lacks: Chinese, Japanese and Korean, Arabic, Devanagari, emoji.
# In color, emoji are pictures, which matplotlib cannot draw.
_FALLBACKS = (
    *(
        "Noto Sans CJK SC",
        "Noto Sans CJK JP",
        "Noto Sans SC",
        "Noto Sans JP",
        "Source Han Sans SC",
        "WenQuanYi Zen Hei",
    ),
    *("WenQuanYi Micro Hei", "Microsoft YaHei", "SimHei", "PingFang SC", "Hiragino Sans GB", "Malgun Gothic"),
    *("Noto Sans Arabic", "Noto Naskh Arabic", "Geeza Pro", "Noto Sans Devanagari", "Lohit Devanagari", "Mangal"),
    *(
        "Noto Sans Thai",
        "Noto Sans Hebrew",
        "Arial Unicode MS",
        "Noto Emoji",
        "Symbola",
        "Segoe UI Emoji",
        "Segoe UI Symbol",
    ),
)
# Reversed magma is perceptually uniform, but yellow at 0. With white at 0, lightness still decreases evenly.
_STOPS = np.linspace(0, 1, 16)[2:]
COLORS = LinearSegmentedColormap.from_list(
    "attention", [(0.0, "white"), *zip(_STOPS, colormaps["magma_r"](0.9 * _STOPS), strict=True)]
)
"""The colors of weights from 0 to the largest one."""
_FEW = 20  # rows or columns, up to which cells are largest
_MANY = 60  # rows or columns, from which cells are smallest unless the width asks for smaller ones
_INK = "#333333"
DPI = 300
_MOST_PIXELS = 12_000  # on a side; a large grid is drawn at a lower resolution, so that it fits into memory
# The smallest legible font size in print, in points and in inches. A labeled cell is at least that large.
_PRINT = 6.0
_LETTER = _PRINT / 72
# Sides of a cell in inches.
_GRID_CELL = 0.115  # in a grid, unless the width asks for smaller ones
_LARGEST = 0.34  # in a single map of few rows and columns
_SMALLEST = 0.01  # in a grid for print, which is refused if its cells would be smaller
_PAD = 0.02
_BAR = 0.12  # width of the color bar and of the space before it, in inches; half of that in print
# Between maps side by side, in inches, beside the row labels.
_BETWEEN = 0.25
# TrueType letters in a PDF, as journals require; text in an SVG, so that labels can be edited.
_EMBEDDED: Any = {"pdf.fonttype": 42, "svg.fonttype": "none", "svg.hashsalt": "attention"}


class Look(NamedTuple):
    """The title, names, size and color scale of a picture."""

    title: str = ""
    rows: str = "target"
    """The name of the rows."""
    columns: str = "source"
    """The name of the columns."""
    width: float | None = None
    """Width of the whole picture in inches, for print with 6-point letters; None makes it as wide as the map needs."""
    max_weight: float | None = None
    """The weight of the darkest color, to make pictures comparable; None for the largest weight in the picture."""
    dpi: int = DPI
    """Pixels per inch; fewer for a picture that would be wider or higher than 12,000 pixels."""
    font: str = FONT
    """The family of all text; letters that it lacks come from other installed fonts."""
    palette: str | None = None
    """A colormap of matplotlib, such as Blues; None for white to black over red, which print in gray also shows."""

    @property
    def fonts(self) -> tuple[str, ...]:
        """The installed families of all text, in the order in which a letter is looked up."""
        return (self.font, *(name for name in (FONT, *_FALLBACKS) if name in installed_fonts() and name != self.font))


@cache
def installed_fonts() -> frozenset[str]:
    """The families of the installed fonts."""
    return frozenset(entry.name for entry in font_manager.fontManager.ttflist)


def check_look(font: str, palette: str | None) -> None:
    """Raises Mistake for a font that is not installed and for an unknown palette."""
    if font not in installed_fonts():
        raise Mistake(unknown("font", font, installed_fonts()))
    if palette is not None and palette not in colormaps:
        raise Mistake(unknown("palette", palette, [name for name in colormaps if not name.endswith("_r")]))


def missing_glyphs(texts: Iterable[str], fonts: Sequence[str]) -> set[str]:
    """The letters of the texts that none of the installed families has."""
    letters = {letter for text in texts for letter in text if not letter.isspace()}
    for family in fonts:
        letters -= {letter for letter in letters if ord(letter) in _letters_of(family)}
    return letters


@cache
def _letters_of(family: str) -> frozenset[int]:
    return frozenset(FT2Font(font_manager.findfont(family)).get_charmap())


@contextmanager
def _without_glyph_warnings() -> Iterator[None]:
    """Without matplotlib's warning for each missing glyph: `missing_glyphs` reports all of them at once."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"Glyph .* missing from")
        yield


class Picture:
    """A picture that can be saved in several formats."""

    def __init__(self, figure: Figure, width: float | None) -> None:
        self._figure = figure
        with _without_glyph_warnings():
            tight = figure.get_tightbbox()
        box = tight.padded(0.15 if width is None else _PAD)
        if width is not None:
            # Exactly as wide as asked for, although the text around the map is not symmetric.
            middle = (box.x0 + box.x1) / 2
            box = Bbox.from_extents(middle - width / 2, box.y0, middle + width / 2, box.y1)
        self._box = box

    def save(self, path: Path) -> None:
        """Writes a .png, .svg or .pdf file, depending on the extension; the same picture gives the same bytes."""
        with atomic_write(path) as part:
            self._write(part, path.suffix.removeprefix("."))

    def pixels(self) -> Image.Image:
        """The picture in memory."""
        file = BytesIO()
        self._write(file, "png")
        return Image.open(file).convert("RGB")

    def _write(self, file: Path | BytesIO, kind: str) -> None:
        # By default, PDF and SVG files contain the current date.
        metadata = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}.get(kind)
        with rc_context(_EMBEDDED), _without_glyph_warnings():
            self._figure.savefig(file, format=kind, facecolor="white", metadata=metadata, bbox_inches=self._box)


class Panel(NamedTuple):
    """One of several maps in a picture."""

    name: str
    """What distinguishes it from the others; it is written below the map."""
    weights: Float[np.ndarray, "target source"]
    column_labels: Sequence[str]
    row_labels: Sequence[str]


class _Size(NamedTuple):
    cell: float
    """Side of a cell in inches."""
    font: float
    """Font size of the labels in points; 0 for maps without labels."""


def _size_for(longest: int, look: Look) -> _Size:
    """The size of a labeled map with that many rows or columns; a width may make it smaller."""
    if look.width is not None:
        return _Size(_LARGEST, _PRINT)
    share = min(max((longest - _FEW) / (_MANY - _FEW), 0.0), 1.0)
    return _Size(_LARGEST - 0.14 * share, 10 - 3 * share)


def heat_map(
    weights: Float[np.ndarray, "target source"],
    column_labels: Sequence[str],
    row_labels: Sequence[str],
    look: Look,
) -> Picture:
    """Draws one map: columns labeled along the top, rows down the left side, and a square cell for each pair.

    A cell of weight 0 is white. Longer sentences get smaller cells. Raises Mistake if the map is empty, or if the
    width is too small.
    """
    _check_labels(weights.shape, column_labels, row_labels)
    draw = partial(_figure, weights[None, None], (column_labels, row_labels), look)
    figure, size = _fitted(draw, weights.shape[1], look, size=_size_for(max(weights.shape), look))
    if size.cell < _LETTER:
        least = _least_width(draw, smallest=_Size(_LETTER, _PRINT))
        raise Mistake(
            f"A picture of {weights.shape[1]} columns does not fit into {look.width} inches with "
            f"{_PRINT:.0f}-point letters; use at least {least}."
        )
    return Picture(figure, look.width)


def heat_map_grid(
    weights: Float[np.ndarray, "layers heads target source"],
    column_labels: Sequence[str],
    row_labels: Sequence[str],
    look: Look,
) -> Picture:
    """Draws the maps of all heads of a site: a row of maps for each layer, with one color scale.

    The maps in the first row and in the first column are labeled, unless the given width is too small for that. Raises
    Mistake if the maps are empty, or if the width is too small.
    """
    _check_labels(weights.shape[2:], column_labels, row_labels)
    draw = partial(_figure, weights, (column_labels, row_labels), look)
    columns = weights.shape[1] * weights.shape[3]
    figure, size = _fitted(draw, columns, look, size=_Size(_GRID_CELL, _PRINT))
    if size.cell < _LETTER:
        figure, size = _fitted(draw, columns, look, size=_Size(_GRID_CELL, font=0.0))
    if size.cell < _SMALLEST:
        least = _least_width(draw, smallest=_Size(_SMALLEST, font=0.0))
        raise Mistake(
            f"{weights.shape[1]} maps of {weights.shape[3]} columns side by side do not fit into {look.width} "
            f"inches; use at least {least}."
        )
    return Picture(figure, look.width)


def heat_maps_side_by_side(panels: Sequence[Panel], look: Look) -> Picture:
    """Draws several maps beside each other, with one color scale and a name below each.

    A map has row labels unless they are those of the map before it. Raises Mistake if a map is empty, or if the width
    is too small.
    """
    for panel in panels:
        _check_labels(panel.weights.shape, panel.column_labels, panel.row_labels)
    columns = sum(panel.weights.shape[1] for panel in panels)
    longest = max(max(panel.weights.shape) for panel in panels)
    draw = partial(_figure_of_panels, panels, look)
    figure, size = _fitted(draw, columns, look, size=_size_for(longest, look))
    if size.cell < _LETTER:
        raise Mistake(
            f"{len(panels)} maps of {columns} columns in all do not fit into {look.width} inches with "
            f"{_PRINT:.0f}-point letters; use at least {_least_width(draw, smallest=_Size(_LETTER, _PRINT))}."
        )
    return Picture(figure, look.width)


def heat_map_frames(
    weights: Float[np.ndarray, "frames target source"],
    column_labels: Sequence[str],
    row_labels: Sequence[str],
    titles: Sequence[str],
    look: Look,
) -> list[Image.Image]:
    """Draws maps of the same labels, one after another, as pictures of one size, with one color scale.

    Raises Mistake if the maps are empty.
    """
    _check_labels(weights.shape[1:], column_labels, row_labels)
    # One figure is drawn for all frames, with room for the longest title: only the title and the colors change.
    look = look._replace(title=max(titles, key=len), width=None, max_weight=_most(look, weights))
    size = _size_for(max(weights.shape[1:]), look)
    figure = _figure(weights[:1, None], (column_labels, row_labels), look, size=size)
    picture, axes = Picture(figure, width=None), figure.axes[0]
    frames = []
    for map_of_frame, title in zip(weights, titles, strict=True):
        axes.get_images()[0].set_data(map_of_frame)
        _write_title(axes, look._replace(title=title), size.font)
        frames.append(picture.pixels())
    return frames


def draw_on(
    axes: Axes,
    weights: Float[np.ndarray, "target source"],
    column_labels: Sequence[str],
    row_labels: Sequence[str],
    look: Look,
) -> None:
    """Draws one map with labels, names and a color bar beside it on axes that the caller has placed.

    Raises Mistake if the map is empty.
    """
    _check_labels(weights.shape, column_labels, row_labels)
    size = _size_for(max(weights.shape), look)
    most = _most(look, weights)
    image = axes.imshow(weights, cmap=look.palette or COLORS, vmin=0, vmax=most)
    _label(axes, column_labels, row_labels, size=size.font, fonts=look.fonts)
    _name_sides(axes, look, size.font)
    _write_title(axes, look, size.font)
    if axes.figure.get_layout_engine() is None:
        # Nothing else makes room for the color bar and its label.
        left, bottom, width, height = axes.get_position(original=True).bounds
        axes.set_position((left, bottom, 0.75 * width, height))
        axes.set_in_layout(True)  # which set_position ends
    # Axes inside the map's are as high as the map, which the square cells make smaller than the space it was given.
    thick = max(_BAR / _LARGEST / weights.shape[1], 0.025)
    _draw_color_bar(axes.inset_axes((1 + thick, 0, thick, 1)), image, look, size.font)


def _most(look: Look, *maps: np.ndarray) -> float:
    """The weight with the strongest color: that of the look, or the largest of the maps."""
    return float(look.max_weight or max(*(weights.max() for weights in maps), 1e-6))


def _check_labels(shape: Sequence[int], column_labels: Sequence[str], row_labels: Sequence[str]) -> None:
    if tuple(shape) != (len(row_labels), len(column_labels)):
        raise ValueError(
            f"A map of shape {tuple(shape)} does not fit {len(row_labels)} row and {len(column_labels)} column labels."
        )
    if 0 in shape:
        raise Mistake("The map has only <s> and </s> on one side, so nothing is left of it: use special=true.")


def _fitted(draw: Callable[[_Size], Figure], columns: int, look: Look, size: _Size) -> tuple[Figure, _Size]:
    """The figure in the given size, or with the largest cells that the width allows; their size is 0 if none fit."""
    figure = draw(size)
    if look.width is None:
        return figure, size
    # Only the cells shrink with the width, so one step nearly solves for their size. More steps are needed because
    # slanted labels overhang on the right, and because text is measured in whole pixels.
    fitting = figure, size._replace(cell=0.0)
    for _ in range(12):
        with _without_glyph_warnings():
            room = look.width - figure.get_tightbbox().width - 2 * _PAD
        if room >= -_PAD / 2 and size.cell > fitting[1].cell:
            fitting = figure, size
        cell = min(max(size.cell + room / columns, _SMALLEST), _LARGEST)
        if abs(cell - size.cell) < 1e-5:
            break
        size = size._replace(cell=cell)
        figure = draw(size)
    return fitting


def _least_width(draw: Callable[[_Size], Figure], smallest: _Size) -> float:
    """The width at the smallest cell size, in inches, rounded up to a tenth."""
    with _without_glyph_warnings():
        width = draw(smallest).get_tightbbox().width + 2 * _PAD
    return math.ceil(10 * width) / 10


def _figure(
    weights: Float[np.ndarray, "layers heads target source"],
    labels: tuple[Sequence[str], Sequence[str]],
    look: Look,
    size: _Size,
) -> Figure:
    """The maps side by side and below each other; labels, names and the color bar are drawn around them."""
    layers, heads, rows, columns = weights.shape
    across, down = size.cell * columns, size.cell * rows
    gap = 0.12, 0.06 + 1.5 * _LETTER  # below a map, room for its name
    wide, high = heads * (across + gap[0]) - gap[0], layers * (down + gap[1]) - gap[1]
    # Text is measured at the resolution of the figure, which must therefore be that of the picture.
    figure = Figure(figsize=(wide, high), dpi=min(look.dpi, _MOST_PIXELS / max(wide, high)))
    FigureCanvasAgg(figure)
    most = _most(look, weights)
    for layer, head in np.ndindex(layers, heads):
        corner = head * (across + gap[0]) / wide, 1 - (layer * (down + gap[1]) + down) / high
        axes = figure.add_axes((*corner, across / wide, down / high))
        image = axes.imshow(weights[layer, head], cmap=look.palette or COLORS, vmin=0, vmax=most, aspect="auto")
        # Only the maps at the edges have labels: those inside would cover their neighbors.
        sides = labels[0] if layer == 0 else (), labels[1] if head == 0 else ()
        _label(axes, *sides, size=size.font, fonts=look.fonts)
        if layers * heads > 1:
            name = f"layer {layer}, head {head}" if across > 0.8 else f"L{layer} H{head}"
            position: dict[str, Any] = {"xycoords": "axes fraction", "textcoords": "offset points"}
            text: dict[str, Any] = {"fontsize": _PRINT, "fontfamily": look.fonts, "color": _INK}
            axes.annotate(name, xy=(0.5, 0), xytext=(0, -2), ha="center", va="top", **position, **text)
        if layer == head == 0:
            _name_sides(axes, look, size.font)
            _write_title(axes, look, size.font)
    _draw_color_bar(_bar_axes(figure, look), image, look, size.font)
    return figure


def _figure_of_panels(panels: Sequence[Panel], look: Look, size: _Size) -> Figure:
    """The maps side by side, as far apart as their row labels and names need."""
    widths, heights = ([size.cell * panel.weights.shape[axis] for panel in panels] for axis in (1, 0))
    wide, high = sum(widths), max(heights)
    # Measuring text makes a canvas of the whole figure, which must fit into memory too.
    figure = Figure(figsize=(wide, high), dpi=min(look.dpi, _MOST_PIXELS / max(wide, high)))
    FigureCanvasAgg(figure)
    most = _most(look, *(panel.weights for panel in panels))
    text: dict[str, Any] = {"fontfamily": look.fonts, "color": _INK, "parse_math": False}
    lefts, overhang = [0.0], 0.0  # where each map starts, in inches; how far the name before it sticks out
    for number, (panel, across) in enumerate(zip(panels, widths, strict=True)):
        axes = figure.add_axes((0, 0, 1, 1))
        image = axes.imshow(panel.weights, cmap=look.palette or COLORS, vmin=0, vmax=most, aspect="auto")
        rows_named = number > 0 and list(panel.row_labels) == list(panels[number - 1].row_labels)
        _label(axes, panel.column_labels, () if rows_named else panel.row_labels, size=size.font, fonts=look.fonts)
        # About 0.6 of the font size is the mean width of a letter. The name of a run, such as en-vi/seed1, stays whole.
        letters = max(int(across * 72 / (0.6 * size.font)), 16)
        name = textwrap.fill(panel.name, letters, break_long_words=False, break_on_hyphens=False)
        written = axes.annotate(
            name,
            xy=(0.5, 0),
            xytext=(0, -4),
            xycoords="axes fraction",
            textcoords="offset points",
            ha="center",
            va="top",
            fontsize=size.font,
            **text,
        )
        with _without_glyph_warnings():
            name_width, *label_widths = (
                item.get_window_extent().width / figure.dpi for item in (written, *axes.get_yticklabels())
            )
        before, overhang = overhang, max(name_width - across, 0.0) / 2
        if number:
            lefts[number] += max(before + overhang, max(label_widths, default=0.0)) + _BETWEEN
        lefts.append(lefts[number] + across)
    wide = lefts.pop()
    figure.set_size_inches(wide, high)
    figure.set_dpi(min(look.dpi, _MOST_PIXELS / max(wide, high)))
    for axes, left, across, down in zip(figure.axes, lefts, widths, heights, strict=True):
        axes.set_position((left / wide, 1 - down / high, across / wide, down / high))
    _name_sides(figure.axes[0], look, size.font)
    if look.title:
        # Above the labels of all maps: a long title extends over the second one.
        with _without_glyph_warnings():
            top = figure.get_tightbbox().y1 + 10 / 72
        figure.text(0, top / high, look.title, fontsize=size.font + 2, ha="left", va="bottom", **text)
    _draw_color_bar(_bar_axes(figure, look), image, look, size.font)
    return figure


def _bar_axes(figure: Figure, look: Look) -> Axes:
    """Axes for a color bar to the right of maps that fill the figure."""
    wide, thick = figure.get_figwidth(), _BAR if look.width is None else _BAR / 2
    return figure.add_axes((1 + thick / wide, 0, thick / wide, 1))


def _draw_color_bar(axes: Axes, image: AxesImage, look: Look, font: float) -> None:
    bar = axes.figure.colorbar(image, cax=axes)
    bar.outline.set_visible(False)
    small = max(font - 1, _PRINT)
    bar.ax.tick_params(labelsize=small, length=2, colors=_INK)
    bar.set_label("weight", fontsize=small, fontfamily=look.fonts, color=_INK)


def _name_sides(axes: Axes, look: Look, font: float) -> None:
    """Writes the names of rows and columns beside a map."""
    text: dict[str, Any] = {"fontfamily": look.fonts, "color": _INK, "parse_math": False}
    axes.xaxis.set_label_position("top")
    axes.set_xlabel(look.columns, fontsize=font or _PRINT, labelpad=3, loc="left", **text)
    axes.set_ylabel(look.rows, fontsize=font or _PRINT, labelpad=3, loc="top", **text)


def _write_title(axes: Axes, look: Look, font: float) -> None:
    if look.title:
        text: dict[str, Any] = {"fontfamily": look.fonts, "color": _INK, "parse_math": False}
        axes.set_title(look.title, fontsize=(font or _PRINT) + 2, loc="left", pad=10, **text)


def _label(
    axes: Axes, column_labels: Sequence[str], row_labels: Sequence[str], *, size: float, fonts: Sequence[str]
) -> None:
    """Writes the labels of rows and columns, unless their size is 0, and draws the grid lines."""
    # A label is plain text: two dollar signs do not enclose a formula.
    text: dict[str, Any] = {"fontsize": size, "fontfamily": fonts, "color": _INK, "parse_math": False}
    above, beside = (labels if size else () for labels in (column_labels, row_labels))
    axes.xaxis.tick_top()
    axes.set_xticks(range(len(above)), above, rotation=45, ha="left", va="bottom", rotation_mode="anchor", **text)
    axes.set_yticks(range(len(beside)), beside, **text)
    axes.tick_params(length=0, pad=4)
    rows, columns = axes.get_images()[0].get_size()
    # Draw the grid as plain lines: a grid of minor ticks would take most of the drawing time.
    line: dict[str, Any] = {"color": "#eeeeee", "linewidth": 0.5 if size else 0.2}
    axes.vlines(np.arange(columns - 1) + 0.5, -0.5, rows - 0.5, **line)
    axes.hlines(np.arange(rows - 1) + 0.5, -0.5, columns - 0.5, **line)
    for spine in axes.spines.values():
        spine.set_edgecolor("#cccccc")
