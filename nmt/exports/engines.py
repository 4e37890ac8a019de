"""The engines that translate in place of torch, with the exported model that each keeps beside the run."""

import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nmt.exports.export_run import RECORD, export_run, first_pairs, origin
from nmt.exports.formats import open_engine
from nmt.files import check_writable
from nmt.runs.load import Trained, load_runs
from nmt.runs.search import Engine

logger = logging.getLogger(__name__)


def load_with_engine(
    paths: Sequence[str | Path], device: str, precision: str, engine: str
) -> tuple[list[Trained], Engine | None]:
    """The runs in these folders, and the engine that translates in place of torch; None for torch itself.

    An engine's form of the run is kept in RUN/exports, and made if it is missing or the run has changed. Raises the
    errors of `load_runs` and `export_run`, and ValueError for what an engine lacks.
    """
    if engine == "torch":
        return load_runs(paths, device, precision), None
    if len(paths) > 1:
        raise ValueError(f"engine={engine} translates with one run, not with {len(paths)}: use engine=torch.")
    if precision == "bfloat16":
        raise ValueError(f"engine={engine} has precision=float32 and int8, not bfloat16: use engine=torch.")
    [trained] = load_runs(paths, device)
    folder = trained.run.exports / (engine if precision == "float32" else f"{engine}_{precision}")
    if not origin(trained).items() <= _record(folder).items():
        check_writable("run_dir", trained.run.path)
        logger.info("Exporting %s to %s, which later translations will use", trained.run.path, folder)
        try:
            pairs = first_pairs(trained)
        except FileNotFoundError as error:
            raise FileNotFoundError(
                f"{error} The command is python -m nmt.export run_dir={trained.run.path} format={engine} "
                f"quantization={precision} out={folder} source=FILE reference=FILE."
            ) from error
        logger.info("%s", export_run(trained, engine, folder, precision, pairs, overwrite=True))
    return [trained], open_engine(trained, engine, folder, precision)


def _record(folder: Path) -> dict[str, Any]:
    """What a folder was exported from; empty if it is missing or damaged."""
    try:
        found = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
