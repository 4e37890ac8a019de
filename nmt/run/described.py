"""What the manifest of attention maps says of where they come from."""

from pathlib import Path
from typing import Any

from nmt.attention import Attention
from nmt.data.cache import file_digest
from nmt.models import Seq2Seq
from nmt.run.build import Trained


def described_sites(model: Seq2Seq) -> dict[str, dict[str, Any]]:
    """What the manifest says of each site of a model: how many layers and heads, who asks, and the parts."""
    return {
        site: {
            "layers": len(attentions),
            "heads": attentions[0].num_heads,
            "asks": model.queries[site],
            "rows": "source" if site == "encoder_self" else "target",
            "columns": "target" if site == "decoder_self" else "source",
            **_parts(attentions[0]),
        }
        for site, attentions in model.sites.items()
    }


def described_run(trained: Trained, source_file: Path, target: Any, lines: int) -> dict[str, Any]:
    """What the manifest says of the run and the input, with checksums."""
    metrics = trained.run.metrics()
    target_file = None if target is None else Path(str(target))
    return {
        "run_dir": str(trained.run.path),
        "weights_sha256": file_digest(trained.run.weights),
        "command": metrics.get("command"),
        "seed": metrics.get("seed"),
        "direction": str(trained.direction),
        "model": type(trained.model).__name__,
        "input": str(source_file),
        "input_sha256": file_digest(source_file),
        "target": "hypotheses of the search" if target_file is None else str(target_file),
        "target_sha256": target_file and file_digest(target_file),
        "lines": lines,
    }


def _parts(attention: Attention) -> dict[str, Any]:
    """Scorer, window and normaliser by class, and the settings of the window."""
    settings = {
        name: value for name, value in vars(attention.window).items() if not name.startswith("_") and name != "training"
    }
    return {
        "scorer": type(attention.scorer).__name__,
        "window": {"class": type(attention.window).__name__, **settings},
        "normalizer": type(attention.normalizer).__name__,
    }
