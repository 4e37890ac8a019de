"""The runs that a server offers. They are found when it starts and loaded when first requested."""

import logging
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from nmt.config.direction import Direction
from nmt.errors import CheckFailed, Mistake, TemplatedMessage
from nmt.exports.engine_choice import MATCHED, ctranslate2_or_why_not, why_not_ctranslate2
from nmt.exports.engines import load_with_engine
from nmt.names import distinct_names
from nmt.runs.directory import RunDirectory
from nmt.runs.engine import Engine
from nmt.runs.finished import finished_runs
from nmt.runs.load import LoadedRun
from nmt.runs.reading import StoredRun, read_run
from nmt.runs.weights import DamagedWeights
from nmt.serving.allocator import return_memory

logger = logging.getLogger(__name__)


class _Loaded(NamedTuple):
    """A run in memory."""

    state: tuple[Any, ...]
    """The state of its folder when it was loaded; see `_state`."""
    run: LoadedRun
    engine: Engine | None


def _state(run: RunDirectory) -> tuple[Any, ...]:
    """What changes when a run is replaced, even if somebody copies only its weights, or changes its dictionary."""
    statuses = [file.stat() if file.is_file() else None for file in (run.weights, run.dictionary_file)]
    return run.state(), *(status and (status.st_size, status.st_mtime_ns) for status in statuses)


_SECONDS_TO_RETRY = 2.0
_UNUSABLE = (Mistake, CheckFailed, OSError)
"""The errors of a run that cannot be loaded."""


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

    Each folder is a finished run, or contains runs at any depth. Of the latter, unfinished ones are skipped, and those
    whose files cannot be read are `broken`. A run is named by the end of its path (`distinct_names`). `engine` names
    the translation engine; see nmt.exports.engines. With auto, CTranslate2 translates where it was found to translate
    like torch, and torch does everything else, so both models are in memory.

    Raises Mistake if a folder contains no run that can be offered, and if `max_models` is below 1.
    """

    def __init__(
        self,
        folders: Sequence[Path],
        device: str,
        precision: str,
        max_models: int,
        engine: str = "torch",
        cache_dir: str = "runs/cache",
    ) -> None:
        if max_models < 1:
            raise Mistake(f"max_models is {max_models}; it must be at least 1.")
        directions = finished_runs(folders)
        self.offered: dict[str, OfferedRun] = {}
        self.broken: set[str] = set()
        """The names of the runs that could not be read, or could not be loaded the last time."""
        self.outdated: set[str] = set()
        """The names of the runs in memory whose changed folder could not be loaded at the last request."""
        for name, (path, direction) in zip(distinct_names(list(directions)), directions.items(), strict=True):
            if direction is None:
                self.broken.add(name)
            else:
                self.offered[name] = OfferedRun(name, path, direction)
        self.device, self.precision, self.max_models = device, precision, max_models
        self.engine, self.cache_dir = engine, cache_dir
        self.engines: dict[str, tuple[str, str]] = {}
        """The engine that translates for each run, if that is known, and why."""
        self._loaded: OrderedDict[str, _Loaded] = OrderedDict()
        self._next_attempt: dict[str, float] = {}  # for runs that could not be loaded

    def for_direction(self, source: str, target: str) -> OfferedRun | None:
        """The first run that translates in this direction, if possible one that is not broken; None if no run does."""
        direction = Direction(source, target)
        runs = [run for run in self.offered.values() if run.direction == direction]
        return min(runs, key=lambda run: run.name in self.broken, default=None)

    @property
    def first(self) -> str:
        """The name of the first run, if possible of one that is not broken."""
        return min(self.offered, key=lambda name: name in self.broken)

    @property
    def usable(self) -> list[str]:
        """The names of the offered runs that are not broken."""
        return [name for name in self.offered if name not in self.broken]

    @property
    def number_loaded(self) -> int:
        """How many models are in memory."""
        return len(self._loaded)

    def is_loaded(self, name: str) -> bool:
        """Whether a run is in memory."""
        return name in self._loaded

    def has_room_for(self, name: str) -> bool:
        """Whether a run is in memory or can be loaded without dropping another one."""
        return self.is_loaded(name) or self.number_loaded < self.max_models

    def prepare_engines(self) -> None:
        """Exports the runs that have no export for the engine yet, so that no request has to wait for an export.

        With engine=auto, only finds out which engine translates for each run.

        A run whose weights are damaged is broken. Raises whatever else `load_with_engine` raises, including the error
        for a run that the engine does not support.
        """
        for name, run in self.offered.items():
            try:
                if self.engine == "auto":
                    self._note_engine(name, why_not_ctranslate2(read_run(run.path), *self._asked))
                elif self.engine != "torch":
                    load_with_engine([run.path], self.device, self.precision, self.engine)
            except DamagedWeights as error:
                self._breaks(name, error)
            except _UNUSABLE as error:
                if self.engine != "auto":
                    raise
                self._breaks(name, error)

    def preload(self) -> None:
        """Loads the first run that can be loaded, before it is requested.

        Raises whatever `load_with_engine` raises for the first run if no run can be loaded.
        """
        first_error: Exception | None = None
        for name in self.offered:
            try:
                self._loaded[name] = self._read(name)
                return
            except _UNUSABLE as error:
                self._breaks(name, error)
                first_error = first_error or error
        if first_error is not None:
            raise first_error

    def load(self, name: str) -> LoadedRun:
        """Returns the run, and loads it first if it is not in memory or its folder has changed.

        If loading fails, the version in memory stays in use, and the next attempt is made a few seconds later. Raises
        Unavailable if there is no version in memory.
        """
        kept = former = self._loaded.pop(name, None)
        replaces = kept is not None or len(self._loaded) >= self.max_models
        while len(self._loaded) >= self.max_models:  # before the next one needs memory
            dropped, _ = self._loaded.popitem(last=False)
            self.outdated.discard(dropped)
        try:
            if time.monotonic() >= self._next_attempt.get(name, 0):
                kept = self._read(name, kept)
                self.broken.discard(name)
                self.outdated.discard(name)
        except _UNUSABLE as error:  # the folder is damaged, being changed, or has been removed
            self._next_attempt[name] = time.monotonic() + _SECONDS_TO_RETRY
            if kept is None:
                self._breaks(name, error)
            else:
                self.outdated.add(name)
                logger.warning("%s cannot be loaded; its old version is served: %s", name, error)
        finally:
            if kept is not None:
                self._loaded[name] = kept
        if kept is None:
            raise Unavailable(name)
        if former is not None and kept is not former:
            logger.info("%s: its folder has changed, so it has been loaded again", name)
        if replaces and kept is not former:
            del former
            return_memory()  # loading a model takes several times its size
        return kept.run

    def engine_of(self, name: str, usual: bool = True) -> Engine | None:
        """The engine that translates for a loaded run in place of torch; None for torch itself.

        With engine=auto, only for what is `usual`: short sentences without a prefix, and the search of the run.
        """
        return self._loaded[name].engine if usual or self.engine != "auto" else None

    @property
    def _asked(self) -> tuple[str, str, Mapping[str, Any], str]:
        """What engine=auto is asked to do with every run."""
        return self.device, self.precision, {}, self.cache_dir

    def _open_chosen(self, name: str, run: StoredRun) -> Engine | None:
        """The engine for a run with engine=auto; None for torch."""
        opened = ctranslate2_or_why_not(run, *self._asked)
        self._note_engine(name, opened if isinstance(opened, str) else None)
        return None if isinstance(opened, str) else opened

    def _note_engine(self, name: str, why_torch: str | None) -> None:
        chosen = ("torch", why_torch) if why_torch else ("ctranslate2", MATCHED)
        if self.engines.get(name) != chosen:
            logger.info("%s: using %s: %s", name, *chosen)
        self.engines[name] = chosen

    def _breaks(self, name: str, error: Exception) -> None:
        self.broken.add(name)
        logger.warning("%s cannot be loaded: %s", name, error)

    def _read(self, name: str, kept: _Loaded | None = None) -> _Loaded:
        """The run and the state of its folder; `kept` if the folder has not changed since."""
        path = self.offered[name].path
        state = _state(RunDirectory(path))
        if kept and kept.state == state:
            return kept
        automatic = self.engine == "auto"
        [run], engine = load_with_engine([path], self.device, self.precision, "torch" if automatic else self.engine)
        if run.direction != self.offered[name].direction:
            raise Mistake(
                f"{path} translates {run.direction} now, but is offered for {self.offered[name].direction}: restart "
                "the server to offer it for its new direction."
            )
        return _Loaded(state, run, self._open_chosen(name, run.stored) if automatic else engine)
