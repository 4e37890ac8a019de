"""One picture of the attention of several runs on one sentence pair, with one panel per run.

  python -m scripts.studies.map_gallery --out gallery.png \\
    --source "These two cats are very cute." --target "Hai con mèo này rất dễ thương." \\
    dot=runs/results/luong_dot_seed1 additive=runs/results/luong_additive_seed1

The maps are cross attention, averaged over layers and heads, under forced decoding of the target, so all panels show
the same two sentences. A row is the step that predicts a target piece; a column is a source piece. With content-based
scorers, a row aligns better with the previous piece, which the step reads; with location, it aligns better with the
piece that the step predicts (Luong et al. 2015, footnote 14). All panels share one color scale. Gray cells are outside
the local window.
"""

import argparse
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib

matplotlib.use("agg")

import matplotlib.pyplot as plt
import numpy as np

from nmt.errors import Mistake
from nmt.insight.forced_maps import first_ranked, forced_maps
from nmt.runs.load import load_run
from scripts.mistakes import report_mistakes

COLUMNS = 3


class Panel(NamedTuple):
    """The map of one run: weights (target pieces, source pieces) and their labels."""

    name: str
    weights: Any
    """NaN outside a local window."""
    source: list[str]
    target: list[str]


def panel(name: str, run_dir: Path, source: str, target: str) -> Panel:
    """The panel of a run. Raises Mistake if a sentence is empty or longer than the model accepts."""
    run = load_run(run_dir, "cpu")
    pair = [run.tokenizers.source.encode(source)], [run.tokenizers.target.encode(target)]
    maps = next(forced_maps(run, first_ranked(*pair), batch_tokens=1), None)
    if maps is None:
        raise Mistake(
            f"--source {source!r} and --target {target!r} must not be empty or longer than the model accepts."
        )
    cross = maps.site("cross")
    weights = cross.weights.mean(axis=(0, 1))
    if cross.local is not None:
        weights = np.where(cross.local.allowed.any(axis=(0, 1)), weights, np.nan)
    return Panel(name, weights, cross.columns, cross.outputs)


def draw(panels: Sequence[Panel], out: Path) -> None:
    """Writes the picture."""
    columns = min(COLUMNS, len(panels))
    rows = math.ceil(len(panels) / columns)
    figure, axes = plt.subplots(rows, columns, figsize=(4.2 * columns, 4.2 * rows), layout="constrained", squeeze=False)
    for axis in axes.flat[len(panels) :]:
        axis.set_visible(False)
    for axis, panel in zip(axes.flat, panels, strict=False):
        axis.set_facecolor("lightgray")
        image = axis.imshow(panel.weights, cmap="magma_r", vmin=0, vmax=1)
        axis.set_title(panel.name, loc="left", parse_math=False)
        axis.set_xticks(range(len(panel.source)), panel.source, rotation=60, ha="right", fontsize=8, parse_math=False)
        axis.set_yticks(range(len(panel.target)), panel.target, fontsize=8, parse_math=False)
    figure.colorbar(image, ax=axes, shrink=0.5, label="weight")
    figure.savefig(out, dpi=100)
    plt.close(figure)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", required=True, help="source sentence")
    parser.add_argument("--target", required=True, help="target sentence")
    parser.add_argument("--out", type=Path, required=True, help="PNG file to write")
    parser.add_argument("runs", nargs="+", metavar="NAME=RUN_DIR", help="title and run directory of a panel")
    options = parser.parse_args(arguments)
    panels = []
    for run in options.runs:
        name, equals, folder = run.partition("=")
        if not equals:
            raise Mistake(f"Cannot read {run!r}: write NAME=RUN_DIR.")
        panels.append(panel(name, Path(folder), options.source, options.target))
    draw(panels, options.out)
    print(options.out)


if __name__ == "__main__":
    report_mistakes(main)
