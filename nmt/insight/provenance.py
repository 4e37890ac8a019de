"""Describes where attention maps come from, for their manifest."""

from pathlib import Path
from typing import Any

from nmt.attention import Attention
from nmt.config.direction import Direction
from nmt.data.cache import file_digest
from nmt.models.base import Attending
from nmt.runs.directory import RunDirectory
from nmt.sites import SITES


def described_sites(model: Attending) -> dict[str, dict[str, Any]]:
    """Each site of a model: how many layers and heads it has, where its queries come from, and its parts."""
    return {
        site: {
            "layers": len(attentions),
            "heads": attentions[0].num_heads,
            "queries": model.queries[site],
            "rows": SITES[site].rows,
            "columns": SITES[site].columns,
            **_parts(attentions[0]),
        }
        for site, attentions in model.sites.items()
    }


def described_attribution(method: str, contrast: str | None) -> dict[str, dict[str, Any]]:
    """The site of an attribution map, with one layer and head; its rows are the predicted pieces."""
    if method == "p_cxmi":
        queries = "log p of the piece that the step predicts, given the earlier sentences, minus log p without them"
        description = {"layers": 1, "heads": 1, "queries": queries, "rows": "target", "columns": "earlier sentences"}
        return {"context": {**description, "method": method, "contrast": None}}
    queries = "log p of the piece that the step predicts"
    if method == "value_zeroing":
        queries = "the input to the output layer at the step"
    elif contrast is not None:
        queries += f", minus log p({contrast})"
    description = {"layers": 1, "heads": 1, "queries": queries, "rows": "target", "columns": "source"}
    return {"cross": {**description, "method": method, "contrast": contrast}}


def described_run(run: RunDirectory, model: Attending, direction: Direction | None) -> dict[str, Any]:
    """The run, finished or not, with the checksum of its weights if they are saved."""
    metrics = run.metrics()
    return {
        "run_dir": str(run.path),
        "weights_sha256": file_digest(run.weights) if run.weights.is_file() else None,
        "command": metrics.get("command"),
        "seed": metrics.get("seed"),
        "direction": None if direction is None else str(direction),
        "model": type(model).__name__,
    }


def described_files(source: Path, target: Path | None) -> dict[str, Any]:
    """The input file and the target file; without a target file, the targets come from the search."""
    return {
        "input": str(source),
        "input_sha256": file_digest(source),
        "target": "hypotheses of the search" if target is None else str(target),
        "target_sha256": None if target is None else file_digest(target),
    }


def _parts(attention: Attention) -> dict[str, Any]:
    """The classes of scorer, window and normalizer, and the settings of the window."""
    settings = {
        name: value for name, value in vars(attention.window).items() if not name.startswith("_") and name != "training"
    }
    return {
        "scorer": type(attention.scorer).__name__,
        "window": {"class": type(attention.window).__name__, **settings},
        "normalizer": type(attention.normalizer).__name__,
    }
