"""A bar chart that compares the scores of several systems."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib import colormaps
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from nmt.files import atomic_write

_INK = "#333333"
_LONGEST = 48  # characters; longer names leave no room for the bars


def distinct_labels(names: Sequence[str]) -> list[str]:
    """The names, with long ones shortened in the middle; names that become equal are numbered."""
    half = _LONGEST // 2
    short = [name if len(name) <= _LONGEST else f"{name[: half - 1]}…{name[-half:]}" for name in names]
    alike = {name for name in short if short.count(name) > 1}
    return [f"{number}: {name}" if name in alike else name for number, name in enumerate(short, 1)]


def score_bars(names: Sequence[str], scores: Sequence[tuple[float, float, float]], path: Path) -> None:
    """Writes a PNG with one bar per system, the first on top; a score is a value with the ends of its interval.

    Raises ValueError if there are no systems, or if the numbers of names and scores differ.
    """
    if not names or len(names) != len(scores):
        raise ValueError(f"{len(names)} names and {len(scores)} scores; every system needs one of each.")
    values, lows, highs = (np.array(column) for column in zip(*scores, strict=True))
    figure = Figure(figsize=(7, 0.9 + 0.36 * len(names)), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    positions = np.arange(len(names))
    spread = np.stack([values - lows, highs - values]).clip(min=0)
    axes.barh(
        positions,
        values,
        height=0.62,
        color=colormaps["magma"](0.62),
        xerr=spread,
        error_kw={"ecolor": _INK, "capsize": 2},
    )
    for position, (value, _, high) in enumerate(scores):
        axes.text(high, position, f"  {value:.2f}", va="center", fontsize=9, color=_INK)
    # This font comes with matplotlib and covers all Vietnamese letters.
    axes.set_yticks(
        positions, distinct_labels(names), fontsize=9, fontfamily="DejaVu Sans", color=_INK, parse_math=False
    )
    axes.invert_yaxis()
    axes.set_xlim(0, max(1.0, float(highs.max())) * 1.12)
    axes.set_xlabel("BLEU, with 95 % interval", fontsize=9, color=_INK)
    axes.tick_params(axis="y", length=0)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    with atomic_write(path) as part:
        figure.savefig(part, format="png", dpi=160, facecolor="white")
