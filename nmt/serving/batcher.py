"""One thread runs the models for all requests. A batch contains sentences of similar length for one run and search."""

import asyncio
import concurrent.futures
import math
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from nmt.config.nodes import Node
from nmt.decoding.stepwise import Step
from nmt.decoding.translator import TranslatedLine, Translator
from nmt.errors import TemplatedMessage
from nmt.runs.engine import Engine
from nmt.runs.load import LoadedRun
from nmt.runs.search import build_translator
from nmt.serving.allocator import return_memory
from nmt.serving.gallery import Gallery
from nmt.serving.questions import check_search

T = TypeVar("T")

_BYTES_PER_PIECE = 4
"""UTF-8 bytes assumed per source piece to estimate the size of a batch. The Translator applies the exact limit."""

_ALIKE = 4
"""A sentence joins a batch only if its length and that of the first sentence differ by at most this factor."""

_LONG = 1000
"""A text with more UTF-8 bytes is longer than those of most computations."""

_SHARE_OF_SEARCH = 0.5
"""The share of the time that a search gets while shorter requests are waiting."""

_SHARE_OF_LONG = 0.2
"""The share of the time that a long computation gets while shorter requests are waiting, up to `_MOST_AT_ONCE`."""

_MOST_AT_ONCE = 0.25
"""Maximum number of seconds for which a long computation goes on while a shorter request is waiting."""

_MOST_IN_A_ROW = 10.0
"""After this many seconds of shorter requests, what they interrupted goes on, whatever its share was."""

_SHARE_TO_WAIT = 0.05
"""How long a batch may wait for the clients just answered, as a fraction of the time that the previous batch took."""


class QueueFull(Exception):  # noqa: N818
    """Too many sentences are waiting already. `retry_after` is in seconds."""

    def __init__(self, retry_after: int) -> None:
        super().__init__(TemplatedMessage("The server is busy; try again in {seconds} s.", seconds=retry_after))
        self.retry_after = retry_after


class Abandoned(Exception):  # noqa: N818
    """Ends a computation whose clients have all disconnected."""


class Task(NamedTuple):
    """The run and the search settings that a sentence needs."""

    run: str
    n_best: int = 1
    beam_size: int | None = None
    """None: the run's own beam size, or `n_best` if that is larger."""
    length_penalty: float | None = None
    """None: the run's own penalty."""

    def search(self, stored: Node) -> dict[str, Any]:
        """What the task changes of its run's search, as stored. Raises what `check_search` raises."""
        settings = {"beam_size": self.beam_size, "length_penalty": self.length_penalty}
        check_search(stored, settings)
        if self.n_best == 1 and self.beam_size is None:
            return settings
        if "samples" in stored:
            return {"samples": max(stored["samples"], self.n_best)}
        beam_size = self.beam_size or max(stored["beam_size"], self.n_best)
        return {**settings, "n_best": self.n_best, "beam_size": beam_size}


@dataclass(eq=False)
class _QueuedSentence:
    task: Task
    sentence: str
    prefix: str
    done: asyncio.Future[TranslatedLine]

    @property
    def size(self) -> int:
        """Length in UTF-8 bytes, plus one for EOS; that of the prefix if it is longer, because it takes more steps."""
        return max(len(self.sentence.encode()), len(self.prefix.encode())) + 1

    @property
    def usual(self) -> bool:
        """Whether it is short and has no prefix, and its search is the run's own; see `Gallery.engine_of`."""
        is_own_search = self.task == Task(self.task.run)
        return is_own_search and not self.prefix and self.size <= _LONG


class _Computation(NamedTuple):
    run: str
    computed: Callable[[], Any]
    done: "concurrent.futures.Future[Any]"
    long: bool = False


@dataclass
class _Turns:
    """Decides whose turn it is: that of a search or long computation, or that of shorter requests.

    Time for which it has run alone counts toward its share. Several requests may then go first in a row, so each of
    them waits for the other requests but not for the computation.
    """

    share: float
    most_at_once: float = math.inf
    seconds_left: float = 0.0
    """For how long others could go first when it last resumed; negative if it was owed time."""
    resumed: float = field(default_factory=lambda: time.monotonic())

    def others_may_go_first(self) -> bool:
        now = time.monotonic()
        return self._seconds_left(now) >= 0 or now - self.resumed >= self.most_at_once

    def others_went_first(self, began: float) -> None:
        """Must be called when shorter requests have ended; they began at `began`."""
        left, self.resumed = self._seconds_left(began), time.monotonic()
        # What it is owed is at most one turn, or others would wait long after a burst of requests.
        self.seconds_left = max(left - (self.resumed - began), -self.most_at_once * (1 - self.share) / self.share)

    def _seconds_left(self, now: float) -> float:
        return min(self.seconds_left + (now - self.resumed) * (1 - self.share) / self.share, _MOST_IN_A_ROW)


@dataclass
class _Search:
    """A batch's search, which others may interrupt."""

    run: str
    shortest: int
    """The size of its shortest sentence."""
    turns: _Turns = field(default_factory=lambda: _Turns(_SHARE_OF_SEARCH))

    def yields_to(self, sentence: _QueuedSentence) -> bool:
        """Whether a waiting sentence is so short that it goes first; it may need no other run."""
        return sentence.task.run == self.run and _ALIKE * sentence.size < self.shortest

    def yields_to_computation(self, other: _Computation) -> bool:
        """Whether a waiting computation goes first."""
        return not other.long and other.run == self.run and self.shortest > _LONG


@dataclass
class _LongComputation:
    """A computation that requests for any run may interrupt, unless loading their run would evict another model."""

    gallery: Gallery
    turns: _Turns = field(default_factory=lambda: _Turns(_SHARE_OF_LONG, _MOST_AT_ONCE))

    def yields_to(self, sentence: _QueuedSentence) -> bool:
        return sentence.size <= _LONG and self.gallery.has_room_for(sentence.task.run)

    def yields_to_computation(self, other: _Computation) -> bool:
        return not other.long and self.gallery.has_room_for(other.run)


class Batcher:
    """Does the computation for all requests in one thread. At most `max_waiting` sentences or other computations wait.

    A batch consists of the sentence that has waited longest and others of similar length, with at most about
    `batch_tokens` pieces. Before it is formed, the batcher waits `batch_window` seconds for more sentences. Clients
    that have just been answered would otherwise miss the batch, so the batcher also waits for them, for up to a
    twentieth of the time that the previous batch took. A sentence whose request is canceled before its batch begins
    costs nothing. A computation ends at its next step when all its requests have been canceled.

    A long text must not make others wait until its search ends. Between two steps of a batch's search, a batch of much
    shorter sentences for the same run goes first, and before a long text also another computation on it. All of them
    together get at most half of the time. In the same way, a long computation, such as an attribution, lets batches of
    sentences and shorter computations go first between two of its passes, as long as it has had a fifth of the time;
    if not, it goes on for at most `_MOST_AT_ONCE` seconds. Only one long computation runs at a time.
    """

    def __init__(self, gallery: Gallery, batch_tokens: int, batch_window: float, max_waiting: int) -> None:
        self.gallery, self.batch_tokens = gallery, batch_tokens
        self.batch_window, self.max_waiting = batch_window, max_waiting
        self.sentences_per_second = 10.0
        """A moving average from which Retry-After is computed. It starts at 10."""
        self._waiting: list[_QueuedSentence] = []
        # Held while sentences or computations join their queues or leave them. Nobody waits for anything while holding
        # the lock, so there is no deadlock.
        self._queue = threading.Lock()
        self._computing = 0
        self._arrived = asyncio.Event()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="model")
        self._dispatcher: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop
        self._wanted: Callable[[], bool] = lambda: True  # whether a client is still waiting for the thread's result
        self._computations: deque[_Computation] = deque()
        # What the thread does, if others may interrupt it.
        self._search: _Search | _LongComputation | None = None
        # Reused for batches of the same task.
        self._last: tuple[Task, LoadedRun, Engine | None, Translator] | None = None

    @property
    def load(self) -> float:
        """The queued sentences and computations, divided by `max_waiting`; a large request can raise it above 1."""
        return self._number_waiting / self.max_waiting

    @property
    def _number_waiting(self) -> int:
        return len(self._waiting) + self._computing

    def start(self) -> None:
        """Starts the batcher; must be called inside the event loop."""
        self._loop = asyncio.get_running_loop()
        self._dispatcher = asyncio.create_task(self._dispatch())

    async def stop(self) -> None:
        """Finishes the current batch, then stops."""
        if self._dispatcher:
            self._dispatcher.cancel()
        await asyncio.to_thread(self._thread.shutdown)

    async def translate(
        self, task: Task, sentences: Sequence[str], prefixes: Sequence[str] | None = None
    ) -> list[TranslatedLine]:
        """The translations of each sentence. Raises QueueFull, and whatever a Translator raises."""
        self.check_room(len(sentences))
        loop = asyncio.get_running_loop()
        request = [
            _QueuedSentence(task, sentence, prefix, loop.create_future())
            for sentence, prefix in zip(sentences, prefixes or [""] * len(sentences), strict=True)
        ]
        with self._queue:
            self._waiting.extend(request)
        self._arrived.set()
        try:
            return list(await asyncio.gather(*(sentence.done for sentence in request)))
        finally:
            # If the client has left, its sentences leave the queue; finished ones are not affected.
            for sentence in request:
                sentence.done.cancel()

    async def compute(self, run: str, action: Callable[[LoadedRun], T], *, long: bool = False) -> T:
        """An action's result, computed between batches. Raises QueueFull, and whatever the action raises.

        A long computation lets others go first whenever it calls `between_steps`, so it may do that only while the
        model is as it was trained.
        """
        self.check_room(1)
        self._computing += 1
        client_left = threading.Event()

        def computed() -> T:
            self._wanted = lambda: not client_left.is_set()
            return action(self._load(run))

        with self._queue:
            self._computations.append(_Computation(run, computed, concurrent.futures.Future(), long))
            computation = self._computations[-1]
        # The thread takes computations in their order: this call, or a search between two steps, takes the first one.
        self._thread.submit(self._run_next_computation)
        try:
            return await asyncio.wrap_future(computation.done)
        finally:
            client_left.set()
            self._computing -= 1

    def _run_next_computation(self, may: Callable[[_Computation], bool] = lambda _: True) -> bool:
        """Runs the first waiting computation that may run, and returns whether there was one."""
        with self._queue:
            computation = next(filter(may, self._computations), None)
            if computation is not None:
                self._computations.remove(computation)
        if computation is not None:
            search = self._search
            # A short one may change the model's attention, so nothing else may go first.
            self._search = _LongComputation(self.gallery) if computation.long else None
            if computation.done.set_running_or_notify_cancel():
                try:
                    computation.done.set_result(computation.computed())
                # As in a ThreadPoolExecutor: no result would leave the client waiting, and a panic in a library
                # written in Rust is no Exception.
                except BaseException as error:
                    _free(error)
                    computation.done.set_exception(error)
            self._search = search
        return computation is not None

    def between_steps(self, step: Step | None = None) -> None:
        """Called between the steps of a computation.

        Lets shorter requests run, and raises Abandoned if no client waits.
        """
        if not self._wanted():
            raise Abandoned
        if self._search is not None:
            self._let_others_go_first(self._search)

    def _let_others_go_first(self, search: "_Search | _LongComputation") -> None:
        """Called between two steps: runs shorter computations and shorter batches while any wait and it is their turn.

        Afterwards it is the search's turn until it has its share.
        """
        wanted, turns = self._wanted, search.turns
        while turns.others_may_go_first():
            began = time.monotonic()
            ran = self._run_next_computation(search.yields_to_computation)
            batch, outcome, _ = self._translate_next_batch(search.yields_to)
            if batch:
                self._loop.call_soon_threadsafe(_deliver, batch, outcome)
            self._search, self._wanted = search, wanted
            if not ran and not batch:
                return
            turns.others_went_first(began)

    def check_room(self, new: int) -> None:
        """Raises QueueFull if the queue is not empty and has no room for `new` more."""
        waiting = self._number_waiting
        if waiting and waiting + new > self.max_waiting:
            raise QueueFull(max(1, math.ceil(waiting / self.sentences_per_second)))

    async def _dispatch(self) -> None:
        loop = asyncio.get_running_loop()
        batch: list[_QueuedSentence] = []
        until = 0.0
        while True:
            await self._batch_is_ready(len(batch), until)
            batch, outcome, seconds = await loop.run_in_executor(self._thread, self._translate_next_batch)
            _deliver(batch, outcome)
            if not batch or isinstance(outcome, BaseException):
                continue
            until = loop.time() + _SHARE_TO_WAIT * seconds
            self.sentences_per_second = 0.8 * self.sentences_per_second + 0.2 * len(batch) / seconds

    async def _batch_is_ready(self, answered: int, until: float) -> None:
        """Waits until the queue has a batch.

        While that has fewer than `answered` sentences, it may grow until the event loop's clock reaches `until`.
        """
        loop = asyncio.get_running_loop()
        while not self._waiting:
            self._arrived.clear()
            await self._arrived.wait()
        await asyncio.sleep(self.batch_window)
        while (seconds := until - loop.time()) > 0:
            with self._queue:
                is_all = len(self._fitting()) == len(self._waiting) < answered
            if not is_all:
                return
            self._arrived.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._arrived.wait(), seconds)

    def _translate_next_batch(
        self, may: Callable[[_QueuedSentence], bool] = lambda _: True
    ) -> tuple[list[_QueuedSentence], Sequence[TranslatedLine] | BaseException, float]:
        """Takes the next batch of sentences that may go off the queue: the batch, its translations, and the seconds.

        The thread does that itself, because sentences must stay in the queue as long as it computes something else,
        which may let them go first. An error is returned in place of the translations.
        """
        batch, began = self._take(may), time.monotonic()
        outcome: Sequence[TranslatedLine] | BaseException
        try:
            outcome = self._translated(batch) if batch else []
        # An error that ended the dispatcher would leave every later request without an answer. A panic in a library
        # written in Rust is no Exception.
        except BaseException as error:
            outcome = error
        return batch, outcome, max(time.monotonic() - began, 1e-3)

    def _take(self, may: Callable[[_QueuedSentence], bool]) -> list[_QueuedSentence]:
        """The next batch, whose sentences leave the queue."""
        with self._queue:
            batch = self._fitting(may)
            chosen = set(map(id, batch))
            self._waiting = [sentence for sentence in self._waiting if id(sentence) not in chosen]
        return batch

    def _fitting(self, may: Callable[[_QueuedSentence], bool] = lambda _: True) -> list[_QueuedSentence]:
        """Of the sentences that may be taken, the one that has waited longest and those closest to it in length that
        fit into its batch.

        Removes sentences whose requests were canceled from the queue.
        """
        self._waiting = [sentence for sentence in self._waiting if not sentence.done.done()]
        batch: list[_QueuedSentence] = []
        waiting = [sentence for sentence in self._waiting if may(sentence)]
        if not waiting:
            return batch
        first, longest = waiting[0], 0
        alike = [
            sentence
            for sentence in waiting
            if sentence.task == first.task
            and sentence.usual == first.usual  # or its engine would depend on the others
            and first.size <= _ALIKE * sentence.size
            and sentence.size <= _ALIKE * first.size
        ]
        # The first sentence is the nearest to itself, so that it begins the batch.
        for sentence in sorted(alike, key=lambda sentence: abs(sentence.size - first.size)):
            widest = max(longest, sentence.size)
            if not batch or (len(batch) + 1) * widest <= _BYTES_PER_PIECE * self.batch_tokens:
                batch.append(sentence)
                longest = widest
        return batch

    def _load(self, run: str) -> LoadedRun:
        """Loads the run from the gallery, and keeps no translator in memory whose model the gallery drops."""
        if self._last and not self.gallery.is_loaded(run):
            self._last = None
        loaded = self.gallery.load(run)
        if self._last and self._last[0].run == run and self._last[1] is not loaded:  # the run's folder has changed
            self._last = None
            return_memory()  # again: what the gallery returned did not contain the old model
        return loaded

    def _translated(self, batch: Sequence[_QueuedSentence]) -> list[TranslatedLine]:
        self._search = None  # loading a run is not interrupted
        self._wanted = lambda: not all(sentence.done.done() for sentence in batch)
        task = batch[0].task
        run = self._load(task.run)
        engine = self.gallery.engine_of(task.run, batch[0].usual)
        if self._last is None or self._last[:3] != (task, run, engine):
            translator = build_translator(
                [run],
                task.search(run.settings.search),
                batch_tokens=self.batch_tokens,
                observe=self.between_steps,
                engine=engine,
            )
            self._last = task, run, engine, translator
        translator = self._last[3]
        self._search = _Search(task.run, min(queued.size for queued in batch))
        try:
            return translator.translated_lines(
                [queued.sentence for queued in batch], [queued.prefix for queued in batch]
            )
        except BaseException as error:
            _free(error)
            raise
        finally:
            self._search = None


def _free(error: BaseException) -> None:
    """Frees what the functions that raised an error still hold, such as the tensors of a search.

    Futures and the frames in the error's traceback refer to each other, so the memory would stay in use until the
    garbage is collected, which may be many searches later.
    """
    chain: BaseException | None = error
    seen = set[int]()
    while chain is not None and id(chain) not in seen:
        seen.add(id(chain))
        traceback.clear_frames(chain.__traceback__)
        chain = chain.__cause__ or chain.__context__


def _deliver(batch: Sequence[_QueuedSentence], outcome: Sequence[TranslatedLine] | BaseException) -> None:
    """Gives the translations of a batch, or the error in their place, to those who wait for them."""
    if not isinstance(outcome, BaseException) and len(outcome) != len(batch):
        outcome = ValueError(f"A batch of {len(batch)} sentences has {len(outcome)} translations.")
    for index, sentence in enumerate(batch):
        if not sentence.done.done():
            if isinstance(outcome, BaseException):
                sentence.done.set_exception(outcome)
            else:
                sentence.done.set_result(outcome[index])
