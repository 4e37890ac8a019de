"""One thread computes for all requests. A batch has sentences of similar length, for the same run and search."""

import asyncio
import math
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from nmt.decoding.beam import Step
from nmt.decoding.translator import Translation, Translator
from nmt.runs.load import Trained
from nmt.runs.search import build_translator
from nmt.serving.gallery import Gallery

T = TypeVar("T")

_BYTES_PER_PIECE = 4
"""Assumed UTF-8 bytes per source piece: they limit a batch, and the Translator applies the exact limit."""

_ALIKE = 4
"""A sentence joins a batch only if the longer of it and the batch's first is at most this many times the shorter."""

_SHARE_TO_WAIT = 0.05
"""The fraction of a batch's time that the next batch may wait for the clients just answered."""


class Full(Exception):  # noqa: N818
    """Too many sentences are waiting already. `retry_after` is in seconds."""

    def __init__(self, retry_after: int) -> None:
        super().__init__(f"The server is busy; try again in {retry_after} s.")
        self.retry_after = retry_after


class Abandoned(Exception):  # noqa: N818
    """Ends a computation whose clients have all left."""


class Task(NamedTuple):
    """The run and the search that a sentence needs."""

    run: str
    n_best: int = 1
    beam_size: int | None = None
    """None for the run's own, or `n_best` if that is larger."""


@dataclass(eq=False)
class _Waiting:
    task: Task
    sentence: str
    prefix: str
    done: asyncio.Future[list[Translation]]

    @property
    def size(self) -> int:
        """Length in bytes, with one for the end."""
        return len(self.sentence.encode()) + 1


class Batcher:
    """Computes in one thread everything that requests need, and lets at most `max_waiting` sentences or other
    computations wait.

    A batch has the sentence that has waited longest, and those of about the same length; at most `batch_tokens` pieces.
    While it has room, it waits `batch_window` seconds for others, and up to a twentieth of the previous batch's time
    for the clients just answered, which would otherwise miss the next batch. A sentence
    whose request was cancelled before its batch began costs nothing. A computation ends at its next step when all
    requests of its batch are cancelled.
    """

    def __init__(self, gallery: Gallery, batch_tokens: int, batch_window: float, max_waiting: int) -> None:
        self.gallery, self.batch_tokens = gallery, batch_tokens
        self.batch_window, self.max_waiting = batch_window, max_waiting
        self.sentences_per_second = 10.0
        """A running mean, from which Retry-After is computed; 10 before the first batch."""
        self._waiting: list[_Waiting] = []
        self._computing = 0
        self._arrived = asyncio.Event()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="model")
        self._dispatcher: asyncio.Task[None] | None = None
        self._wanted: Callable[[], bool] = lambda: True  # whether a client still waits for the thread's result
        self._last: tuple[Task, Trained, Translator] | None = None  # built once for batches of the same kind

    @property
    def load(self) -> float:
        """The share of the places to wait that are taken; above 1 after a single large request."""
        return self._number_waiting / self.max_waiting

    @property
    def _number_waiting(self) -> int:
        return len(self._waiting) + self._computing

    def start(self) -> None:
        """Begins to compute; must be called inside the event loop."""
        self._dispatcher = asyncio.create_task(self._dispatch())

    async def stop(self) -> None:
        """Finishes the batch that is being computed, and stops."""
        if self._dispatcher:
            self._dispatcher.cancel()
        await asyncio.to_thread(self._thread.shutdown)

    async def translate(
        self, task: Task, sentences: Sequence[str], prefixes: Sequence[str] | None = None
    ) -> list[list[Translation]]:
        """The translations of each sentence, best first. Raises Full, and the errors of a Translator."""
        self._check_room(len(sentences))
        loop = asyncio.get_running_loop()
        new = [
            _Waiting(task, sentence, prefix, loop.create_future())
            for sentence, prefix in zip(sentences, prefixes or [""] * len(sentences), strict=True)
        ]
        self._waiting.extend(new)
        self._arrived.set()
        try:
            return list(await asyncio.gather(*(each.done for each in new)))
        finally:
            for each in new:
                each.done.cancel()

    async def compute(self, run: str, action: Callable[[Trained], T]) -> T:
        """The result of an action on a run, computed between two batches. Raises Full, and the errors of the action."""
        self._check_room(1)
        self._computing += 1
        left = threading.Event()

        def computed() -> T:
            self._wanted = lambda: not left.is_set()
            return action(self._load(run))

        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, computed)
        finally:
            left.set()
            self._computing -= 1

    def stop_if_abandoned(self, step: Step | None = None) -> None:
        """Called between the steps of a computation. Raises Abandoned if no client waits for its result."""
        if not self._wanted():
            raise Abandoned

    def _check_room(self, new: int) -> None:
        """Raises Full if something waits already and there is no room for `new` more."""
        waiting = self._number_waiting
        if waiting and waiting + new > self.max_waiting:
            raise Full(max(1, math.ceil(waiting / self.sentences_per_second)))

    async def _dispatch(self) -> None:
        loop = asyncio.get_running_loop()
        batch: list[_Waiting] = []
        until = 0.0
        while True:
            batch = await self._next_batch(len(batch), until)
            began = loop.time()
            try:
                found = await loop.run_in_executor(self._thread, self._translated, batch)
            except Exception as error:
                for each in batch:
                    if not each.done.done():
                        each.done.set_exception(error)
                continue
            for each, translations in zip(batch, found, strict=True):
                if not each.done.done():
                    each.done.set_result(translations)
            seconds = max(loop.time() - began, 1e-3)
            until = loop.time() + _SHARE_TO_WAIT * seconds
            self.sentences_per_second = 0.8 * self.sentences_per_second + 0.2 * len(batch) / seconds

    async def _next_batch(self, answered: int, until: float) -> list[_Waiting]:
        """Takes a batch off the queue.

        If it has fewer than `answered` sentences, it may grow until the event loop's time is `until`.
        """
        loop = asyncio.get_running_loop()
        batch: list[_Waiting] = []
        while not batch:
            if not self._waiting:
                self._arrived.clear()
                await self._arrived.wait()
            await asyncio.sleep(self.batch_window)
            batch = self._fitting()
            while len(batch) == len(self._waiting) < answered and (left := until - loop.time()) > 0:
                self._arrived.clear()
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._arrived.wait(), left)
                batch = self._fitting()
        chosen = set(map(id, batch))
        self._waiting = [each for each in self._waiting if id(each) not in chosen]
        return batch

    def _fitting(self) -> list[_Waiting]:
        """The sentence that has waited longest, and those of most similar length that fit into a batch with it.

        Forgets sentences whose requests were cancelled.
        """
        self._waiting = [each for each in self._waiting if not each.done.done()]
        batch: list[_Waiting] = []
        if not self._waiting:
            return batch
        first, longest = self._waiting[0], 0
        alike = [
            each
            for each in self._waiting
            if each.task == first.task and first.size <= _ALIKE * each.size and each.size <= _ALIKE * first.size
        ]
        for each in sorted(alike, key=lambda each: abs(each.size - first.size)):
            grown = max(longest, each.size)
            if not batch or (len(batch) + 1) * grown <= _BYTES_PER_PIECE * self.batch_tokens:
                batch.append(each)
                longest = grown
        return batch

    def _load(self, run: str) -> Trained:
        """The run from the gallery."""
        if self._last and not self.gallery.is_loaded(run):
            self._last = None  # it would keep in memory a model that the gallery drops
        return self.gallery.load(run)

    def _translated(self, batch: Sequence[_Waiting]) -> list[list[Translation]]:
        self._wanted = lambda: not all(each.done.done() for each in batch)
        task = batch[0].task
        trained = self._load(task.run)
        settings = {}
        if task.n_best > 1 or task.beam_size is not None:
            own = trained.settings.search.get("beam_size", 1)
            settings = {"n_best": task.n_best, "beam_size": task.beam_size or max(own, task.n_best)}
        if self._last is None or self._last[:2] != (task, trained):
            translator = build_translator(
                [trained],
                settings,
                batch_tokens=self.batch_tokens,
                observe=self.stop_if_abandoned,
                engine=self.gallery.engine_of(task.run),
            )
            self._last = task, trained, translator
        return self._last[2].n_best([each.sentence for each in batch], [each.prefix for each in batch])
