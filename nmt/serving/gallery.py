"""The runs that a server offers: found at its start, loaded when first requested."""

from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from nmt.config.direction import Direction
from nmt.runs.directory import RunDirectory
from nmt.runs.load import Trained, load_run


class Offered(NamedTuple):
    """A finished run that can be requested."""

    name: str
    path: Path
    direction: Direction


class Gallery:
    """Finished runs by name. At most `max_models` are in memory; the least recently used one is dropped.

    Each folder is a run, or holds runs at any depth; unfinished runs are left out. A name is the end of a path, as long
    as is needed to distinguish the runs. Raises FileNotFoundError if a folder holds no finished run, and ValueError if
    `max_models` is below 1.
    """

    def __init__(self, folders: Sequence[Path], device: str, precision: str, max_models: int) -> None:
        if max_models < 1:
            raise ValueError(f"max_models is {max_models}; it must be at least 1.")
        paths = list(dict.fromkeys(path for folder in folders for path in _finished_runs(folder)))
        self.offered = {
            name: Offered(name, path, Direction.parse(str(RunDirectory(path).config()["direction"])))
            for name, path in zip(_names(paths), paths, strict=True)
        }
        self.device, self.precision, self.max_models = device, precision, max_models
        self._loaded: OrderedDict[str, tuple[tuple[bytes, ...], Trained]] = OrderedDict()

    def for_direction(self, source: str, target: str) -> Offered | None:
        """The first run that translates this direction."""
        asked = Direction(source, target)
        return next((run for run in self.offered.values() if run.direction == asked), None)

    @property
    def number_loaded(self) -> int:
        """How many models are in memory."""
        return len(self._loaded)

    def load(self, name: str) -> Trained:
        """The run, loaded; again if its folder has changed. Raises the errors of `load_run`."""
        run = self.offered[name]
        state = RunDirectory(run.path).state()
        kept = self._loaded.pop(name, None)
        trained = kept[1] if kept and kept[0] == state else load_run(run.path, self.device, self.precision)
        self._loaded[name] = state, trained
        while len(self._loaded) > self.max_models:
            self._loaded.popitem(last=False)
        return trained


def _finished_runs(folder: Path) -> list[Path]:
    run = RunDirectory(folder)
    if run.started:
        run.require_finished()
        return [folder]
    if not folder.is_dir():
        raise FileNotFoundError(f"There is no folder {folder}; run_dirs takes run directories, or folders of them.")
    found = sorted(path.parent for path in folder.rglob("config.yaml") if RunDirectory(path.parent).finished)
    if not found:
        raise FileNotFoundError(f"{folder} holds no finished run; train one with python -m nmt.train.")
    return found


def _names(paths: Sequence[Path]) -> list[str]:
    """The shortest ends of the paths that differ from each other."""
    parts = [path.resolve().parts for path in paths]
    for length in range(1, max(map(len, parts)) + 1):
        names = ["/".join(each[-length:]) for each in parts]
        if len(set(names)) == len(names):
            return names
    return [str(path) for path in paths]
