"""Pictures of attention maps, from arrays."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float
from matplotlib import colormaps
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


def heat_map(
    weights: Float[np.ndarray, "target source"],
    source_labels: Sequence[str],
    target_labels: Sequence[str],
    path: Path,
    title: str,
) -> None:
    """Draw a map as a PNG: source on top, target on the left, a square cell per pair, white at weight 0.

    Raises ValueError when the labels do not fit the map or it is empty.
    """
    if weights.shape != (len(target_labels), len(source_labels)) or weights.size == 0:
        raise ValueError(
            f"A map of shape {weights.shape} does not fit {len(target_labels)} target and {len(source_labels)} source "
            "labels: it needs a row per target and a column per source label, at least one of each."
        )
    cell, font = _sizes(max(weights.shape))
    width, height = cell * len(source_labels), cell * len(target_labels)
    figure = Figure(figsize=(width, height))
    FigureCanvasAgg(figure)
    # The cells fill the figure; labels, title and bar lie outside, and the tight box at the end takes them in.
    axes = figure.add_axes((0, 0, 1, 1))
    image = axes.imshow(weights, cmap=_COLOURS, vmin=0, vmax=max(float(weights.max()), 1e-6), aspect="auto")
    _label(axes, source_labels, target_labels, font)
    bar = figure.colorbar(image, cax=figure.add_axes((1 + 0.15 / width, 0, 0.12 / width, 1)))
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=font - 1, length=2, colors=_INK)
    axes.set_title(title, fontsize=font + 2, fontfamily=_FONT, color=_INK, loc="left", pad=10, parse_math=False)
    figure.savefig(path, format="png", dpi=160, bbox_inches="tight", pad_inches=0.15, facecolor="white")


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
    figure.savefig(path, format="png", dpi=160, facecolor="white")


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
    axes.set_xticks(np.arange(len(source_labels) - 1) + 0.5, minor=True)
    axes.set_yticks(np.arange(len(target_labels) - 1) + 0.5, minor=True)
    axes.grid(which="minor", color="#eeeeee", linewidth=0.5)
    for spine in axes.spines.values():
        spine.set_edgecolor("#cccccc")
