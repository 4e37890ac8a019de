"""Pictures of attention maps and scores, from arrays."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float
from matplotlib import colormaps, rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

# matplotlib brings it along, and it has all Vietnamese letters.
_FONT = "DejaVu Sans"
# Magma is perceptually uniform, but yellow at 0. White there keeps lightness falling evenly.
_STOPS = np.linspace(0, 1, 16)[2:]
_COLOURS = LinearSegmentedColormap.from_list(
    "attention", [(0.0, "white"), *zip(_STOPS, colormaps["magma_r"](0.9 * _STOPS), strict=True)]
)
_FEW, _MANY = 20, 60
_INK = "#333333"
# A grid of many heads and long sentences is drawn coarser rather than too large for the memory.
_DPI, _MOST_PIXELS = 160, 12_000
# The smallest letters that can be read in print, in points.
_PRINT = 6.0
# Letters stay letters: TrueType in a PDF, which journals ask for; in an SVG outlines, which every program shows alike.
_EMBEDDED: Any = {"pdf.fonttype": 42, "svg.fonttype": "path", "svg.hashsalt": "attention"}


def heat_map(
    weights: Float[np.ndarray, "target source"],
    source_labels: Sequence[str],
    target_labels: Sequence[str],
    path: Path,
    title: str,
    width: float | None = None,
) -> None:
    """Draw a map as .png, .svg or .pdf: source on top, target on the left, a square cell per pair, white at weight 0.

    Cells have one size, smaller for longer sentences; a picture of a given `width` in inches, for a page of print, has
    letters of 6 points. Raises ValueError when the labels do not fit the map, it is empty or the width too small.
    """
    if weights.shape != (len(target_labels), len(source_labels)) or weights.size == 0:
        raise ValueError(
            f"A map of shape {weights.shape} does not fit {len(target_labels)} target and {len(source_labels)} source "
            "labels: it needs a row per target and a column per source label, at least one of each."
        )
    cell, font = _sizes(max(weights.shape)) if width is None else (_printed_cell(weights, target_labels, width), _PRINT)
    columns, rows = cell * len(source_labels), cell * len(target_labels)
    figure = Figure(figsize=(columns, rows))
    FigureCanvasAgg(figure)
    # The cells fill the figure; labels, title and bar lie outside, and the tight box at the end takes them in.
    axes = figure.add_axes((0, 0, 1, 1))
    image = axes.imshow(weights, cmap=_COLOURS, vmin=0, vmax=max(float(weights.max()), 1e-6), aspect="auto")
    _label(axes, source_labels, target_labels, font)
    gap, thick = (0.15, 0.12) if width is None else (0.06, 0.06)
    bar = figure.colorbar(image, cax=figure.add_axes((1 + gap / columns, 0, thick / columns, 1)))
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=max(font - 1, _PRINT), length=2, colors=_INK)
    axes.set_title(title, fontsize=font + 2, fontfamily=_FONT, color=_INK, loc="left", pad=10, parse_math=False)
    _save(figure, path, pad=0.15 if width is None else 0.01)


def heat_map_grid(
    weights: Float[np.ndarray, "layers heads target source"],
    source_labels: Sequence[str],
    target_labels: Sequence[str],
    path: Path,
    title: str,
) -> None:
    """Draw the maps of all heads of a site as .png, .svg or .pdf: a row of maps for each layer, one scale of colours.

    Pieces stand at the outer maps. Raises ValueError when the labels do not fit the maps or these are empty.
    """
    layers, heads, *shape = weights.shape
    if shape != [len(target_labels), len(source_labels)] or weights.size == 0:
        raise ValueError(
            f"Maps of shape {tuple(shape)} do not fit {len(target_labels)} target and {len(source_labels)} source "
            "labels: each needs a row per target and a column per source label, at least one of each."
        )
    cell = 0.115
    size = (heads * (cell * shape[1] + 0.12), layers * (cell * shape[0] + 0.2))
    figure = Figure(figsize=size)
    FigureCanvasAgg(figure)
    panels: Any = figure.subplots(layers, heads, squeeze=False)
    gaps = {"wspace": 0.12 / (cell * shape[1]), "hspace": 0.2 / (cell * shape[0])}
    figure.subplots_adjust(left=0, right=1, bottom=0, top=1, **gaps)
    for layer, head in np.ndindex(layers, heads):
        axes = panels[layer, head]
        axes.imshow(weights[layer, head], cmap=_COLOURS, vmin=0, vmax=max(float(weights.max()), 1e-6), aspect="auto")
        _label(axes, source_labels if layer == 0 else (), target_labels if head == 0 else (), _PRINT)
        axes.set_xlabel(f"layer {layer}, head {head}", fontsize=_PRINT, color=_INK, labelpad=2)
    letters = max(map(len, source_labels)) * 0.5 * _PRINT / 72
    figure.suptitle(
        title, x=0, y=1 + (letters + 0.2) / size[1], ha="left", va="bottom", fontsize=9, fontfamily=_FONT, color=_INK
    )
    _save(figure, path, pad=0.1)


def score_bars(names: Sequence[str], scores: Sequence[tuple[float, float, float]], path: Path) -> None:
    """Draw (value, low, high) of each system as a PNG: a bar with its interval, the first system on top.

    Raises ValueError when there are none, or not one for each name.
    """
    if not names or len(names) != len(scores):
        raise ValueError(f"{len(names)} names and {len(scores)} scores: give one of each for every system.")
    values, lows, highs = (np.array(column) for column in zip(*scores, strict=True))
    figure = Figure(figsize=(7, 0.9 + 0.36 * len(names)), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    places = np.arange(len(names))
    spread = np.stack([values - lows, highs - values]).clip(min=0)
    axes.barh(
        places,
        values,
        height=0.62,
        color=colormaps["magma"](0.62),
        xerr=spread,
        error_kw={"ecolor": _INK, "capsize": 2},
    )
    for place, (value, _, high) in enumerate(scores):
        axes.text(high, place, f"  {value:.2f}", va="center", fontsize=9, color=_INK)
    axes.set_yticks(places, names, fontsize=9, fontfamily=_FONT, color=_INK, parse_math=False)
    axes.invert_yaxis()
    axes.set_xlim(0, max(1.0, float(highs.max())) * 1.12)
    axes.set_xlabel("BLEU, with 95 % interval", fontsize=9, color=_INK)
    axes.tick_params(axis="y", length=0)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    _save(figure, path, pad=None)


def _save(figure: Figure, path: Path, pad: float | None) -> None:
    """Writes the figure in the format of the path's extension, the same bytes each time."""
    kind = path.suffix.removeprefix(".")
    # Both write the date of the day otherwise.
    metadata = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}.get(kind)
    tight: dict[str, Any] = {} if pad is None else {"bbox_inches": "tight", "pad_inches": pad}
    with rc_context(_EMBEDDED):
        dpi = min(_DPI, _MOST_PIXELS / max(figure.get_size_inches()))
        figure.savefig(path, format=kind, dpi=dpi, facecolor="white", metadata=metadata, **tight)


def _printed_cell(weights: np.ndarray, target_labels: Sequence[str], width: float) -> float:
    """The cell that makes a picture this wide, the target labels and the bar beside the map included, in inches."""
    letters = max(map(len, target_labels)) * 0.6 * _PRINT / 72
    cell = (width - letters - 0.45) / weights.shape[1]
    if cell < _PRINT / 72:
        raise ValueError(
            f"A picture of {weights.shape[1]} columns does not fit into {width} inches with letters of {_PRINT:.0f} "
            f"points; give at least {letters + 0.45 + weights.shape[1] * _PRINT / 72:.1f}."
        )
    return min(cell, 0.34)


def _sizes(tokens: int) -> tuple[float, float]:
    """Width of a cell in inches and size of the letters in points: smaller for longer sentences."""
    share = min(max((tokens - _FEW) / (_MANY - _FEW), 0.0), 1.0)
    return 0.34 - 0.14 * share, 10 - 3 * share


def _label(axes: Axes, source_labels: Sequence[str], target_labels: Sequence[str], font: float) -> None:
    # A label is text: two dollar signs in it are no formula.
    text: dict[str, Any] = {"fontsize": font, "fontfamily": _FONT, "color": _INK, "parse_math": False}
    axes.xaxis.tick_top()
    axes.set_xticks(
        range(len(source_labels)), source_labels, rotation=45, ha="left", va="bottom", rotation_mode="anchor", **text
    )
    axes.set_yticks(range(len(target_labels)), target_labels, **text)
    axes.tick_params(which="both", length=0, pad=4)
    rows, columns = axes.get_images()[0].get_size()
    axes.set_xticks(np.arange(columns - 1) + 0.5, minor=True)
    axes.set_yticks(np.arange(rows - 1) + 0.5, minor=True)
    axes.grid(which="minor", color="#eeeeee", linewidth=0.5)
    for spine in axes.spines.values():
        spine.set_edgecolor("#cccccc")
