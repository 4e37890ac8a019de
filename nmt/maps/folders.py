"""Folders of attention maps as the runs of one page."""

import logging
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from nmt.maps.map_files import MANIFEST, MapFolder
from nmt.maps.viewer import ViewedRun

logger = logging.getLogger(__name__)


def map_folders(path: Path) -> list[Path]:
    """The folder itself, or if it is none of maps those in it that are, by name."""
    inside = [] if (path / MANIFEST).is_file() else sorted(file.parent for file in path.glob(f"*/{MANIFEST}"))
    return inside or [path]


def viewed_runs(folders: Sequence[MapFolder], lines: Sequence[int] | None = None) -> list[ViewedRun]:
    """The folders for one page, each with a name of its own; warns where they are not of the same lines."""
    names = [_run_name(folder) for folder in folders]
    many = {name for name, number in Counter(names).items() if number > 1}
    first = _sources(folders[0])
    for folder in folders[1:]:
        differing = [line for line, text in _sources(folder).items() if first.get(line, text) != text]
        if differing:
            logger.warning(
                "Line %d of %s is another one than in %s; the page shows them side by side.",
                differing[0],
                folder.path,
                folders[0].path,
            )
    return [
        ViewedRun(f"{name} ({folder.path})" if name in many else name, folder.sentences(lines))
        for name, folder in zip(names, folders, strict=True)
    ]


def _sources(folder: MapFolder) -> dict[int, str]:
    return {entry["line"]: "".join(entry["source_pieces"]) for entry in folder.manifest["sentences"]}


def _run_name(folder: MapFolder) -> str:
    """What the run of maps is called: its path, and the step of training if that had not ended."""
    made_from = folder.manifest["made_from"]
    step = made_from.get("step")
    return f"step {step}" if step is not None else str(made_from.get("run_dir", folder.path))
