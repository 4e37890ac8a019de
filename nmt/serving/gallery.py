"""The runs that a server offers. They are found when it starts and loaded when first requested."""

import logging
import time
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from nmt.config.direction import Direction
from nmt.errors import CheckFailed, Mistake, TemplatedMessage
from nmt.exports.engines import load_with_engine
from nmt.runs.directory import RunDirectory
from nmt.runs.load import LoadedRun
from nmt.runs.search import Engine

logger = logging.getLogger(__name__)


class _Loaded(NamedTuple):
    state: tuple[bytes, ...]
    run: LoadedRun
    engine: Engine | None


_SECONDS_TO_RETRY = 2.0


class Unavailable(Exception):  # noqa: N818
    """The run cannot be loaded now; the log gives the reason."""

    def __init__(self, name: str) -> None:
        super().__init__(
            TemplatedMessage("The run {name} cannot be loaded now; see the server's log for the reason.", name=name)
        )


class OfferedRun(NamedTuple):
    """A finished run that can be requested."""

    name: str
    path: Path
    direction: Direction


class Gallery:
    """Finished runs by name. At most `max_models` are kept in memory; beyond that, the least recently used is dropped.

    Each folder is a finished run, or contains runs at any depth; unfinished ones are skipped. A run is named by the
    end of its path, just long enough to distinguish all runs. `engine` names the translation engine; see
    nmt.exports.engines.

    Raises Mistake if a folder contains no finished run, and if `max_models` is below 1.
    """

    def __init__(
        self, folders: Sequence[Path], device: str, precision: str, max_models: int, engine: str = "torch"
    ) -> None:
        if max_models < 1:
            raise Mistake(f"max_models is {max_models}; it must be at least 1.")
        paths = list(dict.fromkeys(path for folder in folders for path in _finished_runs(folder)))
        self.offered = {
            name: OfferedRun(name, path, Direction.parse(str(RunDirectory(path).config()["direction"])))
            for name, path in zip(_names(paths), paths, strict=True)
        }
        self.device, self.precision, self.max_models, self.engine = device, precision, max_models, engine
        self._loaded: OrderedDict[str, _Loaded] = OrderedDict()
        self._next_attempt: dict[str, float] = {}  # for runs that could not be loaded

    def for_direction(self, source: str, target: str) -> OfferedRun | None:
        """The first run that translates in this direction; None if no run does."""
        direction = Direction(source, target)
        return next((run for run in self.offered.values() if run.direction == direction), None)

    @property
    def number_loaded(self) -> int:
        """How many models are in memory."""
        return len(self._loaded)

    def is_loaded(self, name: str) -> bool:
        """Whether a run is in memory."""
        return name in self._loaded

    def export_all(self) -> None:
        """Exports the runs that have no export for the engine yet, so that no request has to wait for an export.

        Raises whatever `load_with_engine` raises, including the error for a run that the engine does not support.
        """
        if self.engine != "torch":
            for run in self.offered.values():
                load_with_engine([run.path], self.device, self.precision, self.engine)

    def preload(self, name: str) -> None:
        """Loads a run before it is requested. Raises whatever `load_with_engine` raises."""
        self._loaded[name] = self._read(name)

    def load(self, name: str) -> LoadedRun:
        """Returns the run, and loads it first if it is not in memory or its folder has changed.

        If loading fails, the version in memory stays in use, and the next attempt is made a few seconds later. Raises
        Unavailable if there is no version in memory.
        """
        kept = self._loaded.pop(name, None)
        while len(self._loaded) >= self.max_models:  # before the next one needs memory
            self._loaded.popitem(last=False)
        try:
            if time.monotonic() >= self._next_attempt.get(name, 0):
                kept = self._read(name, kept)
        except (Mistake, CheckFailed, OSError) as error:  # the folder is being changed, or has been removed
            self._next_attempt[name] = time.monotonic() + _SECONDS_TO_RETRY
            logger.warning("%s cannot be loaded%s: %s", name, "; its old version is served" if kept else "", error)
        finally:
            if kept is not None:
                self._loaded[name] = kept
        if kept is None:
            raise Unavailable(name)
        return kept.run

    def engine_of(self, name: str) -> Engine | None:
        """The engine that translates for a loaded run in place of torch; None for torch itself."""
        return self._loaded[name].engine

    def _read(self, name: str, kept: _Loaded | None = None) -> _Loaded:
        """The run and the state of its folder; `kept` if the folder has not changed since."""
        path = self.offered[name].path
        state = RunDirectory(path).state()
        if kept and kept.state == state:
            return kept
        [run], engine = load_with_engine([path], self.device, self.precision, self.engine)
        return _Loaded(state, run, engine)


def _finished_runs(folder: Path) -> list[Path]:
    run = RunDirectory(folder)
    if run.started:
        run.require_finished()
        run.config()  # rejects a pretrained encoder
        return [folder]
    if not folder.is_dir():
        raise Mistake(f"There is no folder {folder}; run_dirs takes run directories, or folders that contain them.")
    runs = [RunDirectory(path.parent) for path in folder.rglob("config.yaml")]
    finished = sorted(run.path for run in runs if run.finished and not run.pretrained)
    if not finished:
        raise Mistake(f"{folder} contains no finished run; train one with python -m nmt.train.")
    return finished


def _names(paths: Sequence[Path]) -> list[str]:
    """The ends of the paths, just long enough that no two are equal."""
    parts = [path.resolve().parts for path in paths]
    for length in range(1, max(map(len, parts)) + 1):
        names = ["/".join(path_parts[-length:]) for path_parts in parts]
        if len(set(names)) == len(names):
            return names
    return [str(path) for path in paths]
