"""One thread computes for all requests. Sentences for the same run and search that wait together are one batch."""

import asyncio
import math
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from nmt.decoding.translator import Translation, Translator
from nmt.runs.load import Trained
from nmt.runs.search import build_translator
from nmt.serving.gallery import Gallery

T = TypeVar("T")


class Full(Exception):  # noqa: N818
    """Too many sentences are waiting. `retry_after` is in seconds."""

    def __init__(self, retry_after: int) -> None:
        super().__init__(f"The server is busy; try again in {retry_after} s.")
        self.retry_after = retry_after


class Task(NamedTuple):
    """The model and the search that a sentence needs."""

    run: str
    settings: tuple[tuple[str, Any], ...] = ()
    """Settings of the search that differ from the run's own."""


@dataclass(eq=False)
class _Waiting:
    task: Task
    sentence: str
    prefix: str
    done: asyncio.Future[list[Translation]]
    size: int = field(init=False)

    def __post_init__(self) -> None:
        self.size = len(self.sentence.encode()) + 1


class Engine:
    """Computes in one thread what all requests ask for, and lets at most `max_waiting` sentences wait.

    After the first sentence it waits `batch_window` seconds for others. A batch has at most `batch_tokens` pieces, as
    in a Translator. A sentence whose request was cancelled before its batch began costs nothing.
    """

    def __init__(self, gallery: Gallery, batch_tokens: int, batch_window: float, max_waiting: int) -> None:
        self.gallery, self.batch_tokens = gallery, batch_tokens
        self.batch_window, self.max_waiting = batch_window, max_waiting
        self.sentences_per_second = 10.0
        """Measured; what Retry-After is computed from."""
        self._waiting: deque[_Waiting] = deque()
        self._arrived = asyncio.Event()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="model")
        self._translators: dict[Task, tuple[Trained, Translator]] = {}
        self._dispatcher: asyncio.Task[None] | None = None

    @property
    def load(self) -> float:
        """The share of places in the queue that are taken, from 0 to 1."""
        return len(self._waiting) / self.max_waiting

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
        """The translations of each sentence, best first. Raises Full, and ValueError as a Translator."""
        waiting = len(self._waiting)
        if waiting and waiting + len(sentences) > self.max_waiting:
            raise Full(max(1, math.ceil(waiting / self.sentences_per_second)))
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
        """The result of an action on a run, computed between two batches."""
        if len(self._waiting) >= self.max_waiting:
            raise Full(max(1, math.ceil(len(self._waiting) / self.sentences_per_second)))
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, lambda: action(self.gallery.load(run)))

    async def _dispatch(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            while not self._waiting:
                self._arrived.clear()
                await self._arrived.wait()
                await asyncio.sleep(self.batch_window)
            batch = self._next_batch()
            if not batch:
                continue
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
            rate = len(batch) / max(loop.time() - began, 1e-3)
            self.sentences_per_second = 0.8 * self.sentences_per_second + 0.2 * rate

    def _next_batch(self) -> list[_Waiting]:
        """The first sentence that waits, and others for the same task that fit into a batch with it."""
        batch: list[_Waiting] = []
        others: deque[_Waiting] = deque()
        longest = 0
        while self._waiting:
            each = self._waiting.popleft()
            if each.done.done():  # its request has gone
                continue
            grown = max(longest, each.size)
            # A piece has at least one byte, so this never exceeds the budget in pieces.
            if batch and (each.task != batch[0].task or (len(batch) + 1) * grown > 4 * self.batch_tokens):
                others.append(each)
                continue
            batch.append(each)
            longest = grown
        self._waiting = others
        return batch

    def _translated(self, batch: Sequence[_Waiting]) -> list[list[Translation]]:
        translator = self._translator(batch[0].task)
        return translator.n_best([each.sentence for each in batch], [each.prefix for each in batch])

    def _translator(self, task: Task) -> Translator:
        trained = self.gallery.load(task.run)
        kept = self._translators.get(task)
        if kept is None or kept[0] is not trained:
            kept = trained, build_translator([trained], dict(task.settings), batch_tokens=self.batch_tokens)
            self._translators = {key: value for key, value in self._translators.items() if value[0] is trained}
            self._translators[task] = kept
        return kept[1]
