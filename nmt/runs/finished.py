"""The finished runs that a user names: one by one, or by a folder that contains them."""

import logging
import os
from collections.abc import Iterable
from pathlib import Path

from nmt.config.direction import Direction
from nmt.errors import Mistake
from nmt.paths import real_path
from nmt.runs.directory import RunDirectory
from nmt.runs.included import included_models, named_run

logger = logging.getLogger(__name__)


def finished_runs(folders: Iterable[str | Path]) -> dict[Path, Direction | None]:
    """The directions of the finished translation runs in some folders, each run once; None if a run is broken.

    A folder is a finished run, the name of an included model, or contains runs at any depth. Of the latter, unfinished
    runs and pretrained encoders are skipped. Raises Mistake if a folder has no run that can be read.
    """
    directions: dict[Path, Direction | None] = {}
    known = set[Path]()
    for folder in folders:
        for path, direction in _runs_in(named_run(folder)).items():
            real = real_path(path)  # two folders may lead to the same run, one of them through a link
            if real not in known:
                known.add(real)
                directions[path] = direction
    return directions


def _runs_in(folder: Path) -> dict[Path, Direction | None]:
    run = RunDirectory(folder)
    if run.started:
        run.require_finished()
        return {folder: _direction(run)}
    if not folder.is_dir():
        raise Mistake(
            f"There is no folder {folder}; run_dirs takes run directories, folders that contain them, and the names of "
            f"included models ({', '.join(included_models())})."
        )
    directions: dict[Path, Direction | None] = {}
    first_error: Exception | None = None
    # A training run may replace a folder during the search: os.walk skips missing folders, but rglob fails.
    for path in sorted(Path(parent) for parent, _, names in os.walk(folder) if "config.yaml" in names):
        run = RunDirectory(path)
        try:
            if run.finished and not run.pretrained:
                directions[path] = _direction(run)
        except (Mistake, OSError) as error:
            # One broken folder must not hide all others.
            logger.warning("%s is left out: %s", path, error)
            directions[path] = None
            first_error = first_error or error
    if not any(directions.values()):
        if first_error is not None:
            raise first_error
        raise Mistake(f"{folder} contains no finished run; train one with python -m nmt.train.")
    return directions


def _direction(run: RunDirectory) -> Direction:
    return Direction.parse(str(run.config()["direction"]))  # config() rejects a pretrained encoder
