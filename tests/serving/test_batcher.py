"""The batcher: batches across requests, a bounded queue, cancellation."""

import asyncio
import gc
import random
import shutil
import threading
import time
import weakref
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import TypeVar

import pytest

from nmt.decoding.stepwise import Step
from nmt.decoding.translator import TranslatedLine
from nmt.errors import Mistake
from nmt.insight.sentence_pair import best_translation
from nmt.runs.load import LoadedRun
from nmt.serving import batcher as batchers
from nmt.serving.batcher import Abandoned, Batcher, QueueFull, Task, _QueuedSentence
from nmt.serving.gallery import Gallery

T = TypeVar("T")


def with_batcher(gallery: Gallery, action: Callable[[Batcher, list[int]], Awaitable[T]], **changes: float) -> T:
    """Runs an action with a batcher and the sizes of the batches that it computes."""

    async def run() -> T:
        batcher = Batcher(gallery, **{"batch_tokens": 400, "batch_window": 0.0, "max_waiting": 100, **changes})
        sizes, own = [], batcher._translated
        batcher._translated = lambda batch: sizes.append(len(batch)) or own(batch)
        batcher.start()
        try:
            return await action(batcher, sizes)
        finally:
            await batcher.stop()

    return asyncio.run(run())


@pytest.fixture
def task(gallery: Gallery) -> Task:
    return Task("maps_luong")


def test_sentences_that_wait_together_are_one_batch(gallery: Gallery, task: Task) -> None:
    async def action(batcher: Batcher, sizes: list[int]) -> list[str]:
        lines = ["one two.", "three", "four five six."]
        found = await asyncio.gather(*(batcher.translate(task, [line]) for line in lines))
        assert sizes == [3]
        return [sentence.translations[0].text for [sentence] in found]

    async def alone(batcher: Batcher, sizes: list[int]) -> list[str]:
        return [
            (await batcher.translate(task, [line]))[0].translations[0].text
            for line in ["one two.", "three", "four five six."]
        ]

    assert with_batcher(gallery, action) == with_batcher(gallery, alone)


def test_a_batch_has_one_run_and_search_and_a_limit(gallery: Gallery, task: Task) -> None:
    async def action(batcher: Batcher, sizes: list[int]) -> None:
        other, greedy = Task("maps_transformer"), Task("maps_luong", beam_size=1)
        tasks = [task, other, task, greedy, task]
        await asyncio.gather(*(batcher.translate(each, ["one"]) for each in tasks))
        assert sizes == [3, 1, 1]
        await batcher.translate(task, ["one two three four five six seven"] * 50)
        # 34 bytes with the end, 4 * 400 at most.
        assert max(sizes) <= 1600 // 34

    with_batcher(gallery, action)


def test_the_engine_of_a_sentence_does_not_depend_on_the_others(
    gallery: Gallery, task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With engine=auto, torch translates those with a prefix, longer ones and other searches; CTranslate2 the rest."""

    async def action(batcher: Batcher, sizes: list[int]) -> None:
        asked: list[bool] = []
        monkeypatch.setattr(gallery, "engine_of", lambda name, usual: asked.append(usual))
        await batcher.translate(task, ["one", "two", "three", "four"], ["", "mot", "", "bon"])
        assert sorted(zip(asked, sizes, strict=True)) == [(False, 2), (True, 2)]
        asked.clear()
        await batcher.translate(task, ["one " * 240, "one " * 260])  # 961 and 1,041 bytes
        assert sorted(asked) == [False, True]
        asked.clear()
        await batcher.translate(Task(task.run, beam_size=3), ["one"])
        await batcher.translate(Task(task.run, n_best=2), ["one"])
        assert asked == [False, False]

    with_batcher(gallery, action, batch_tokens=4000)


def test_every_batch_has_the_oldest_sentence_and_those_of_most_similar_length(gallery: Gallery, task: Task) -> None:
    async def action(batcher: Batcher, sizes: list[int]) -> None:
        batches: list[list[int]] = []

        def translated(batch: Sequence[_QueuedSentence]) -> list[TranslatedLine]:
            batches.append([int(each.prefix) for each in batch])
            return [TranslatedLine([], "") for _ in batch]

        batcher._translated = translated
        lengths = random.Random(0).choices(range(1, 60), k=200)
        await batcher.translate(task, ["x" * length for length in lengths], [str(place) for place in range(200)])
        left = set(range(200))
        for batch in batches:
            assert batch[0] == min(left)
            furthest = max(abs(lengths[place] - lengths[batch[0]]) for place in batch)
            left -= set(batch)
            longest = max(lengths[place] for place in batch) + 1
            assert len(batch) * longest <= 400
            first = lengths[batch[0]] + 1
            alike = [place for place in range(200) if first / 4 <= lengths[place] + 1 <= 4 * first]
            assert set(batch) <= set(alike)
            for place in left.intersection(alike):  # nearer ones do not fit
                if abs(lengths[place] - lengths[batch[0]]) < furthest:
                    assert (len(batch) + 1) * max(longest, lengths[place] + 1) > 400
        assert not left

    with_batcher(gallery, action, batch_tokens=100)


def test_clients_that_were_answered_together_share_the_next_batch_too(
    gallery: Gallery, task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batchers, "_SHARE_TO_WAIT", 1e6)

    async def action(batcher: Batcher, sizes: list[int]) -> None:
        async def client(slowness: int) -> None:
            for _ in range(3):
                await batcher.translate(task, ["one"])
                for _ in range(slowness):  # turns of the event loop until its next request is there
                    await asyncio.sleep(0)

        await asyncio.gather(*map(client, range(0, 20, 5)))
        assert sizes == [4, 4, 4]

    with_batcher(gallery, action)


def test_a_full_queue_refuses_and_says_when_to_come_again(gallery: Gallery, task: Task) -> None:
    async def action(batcher: Batcher, sizes: list[int]) -> None:
        first = asyncio.ensure_future(batcher.translate(task, ["one"] * 5))
        await asyncio.sleep(0)
        assert batcher.load == 1.0
        with pytest.raises(QueueFull, match="The server is busy; try again in 1 s") as refused:
            await batcher.translate(task, ["two"])
        assert refused.value.retry_after == 1
        assert len(await first) == 5
        assert batcher.load == 0.0
        await batcher.translate(task, ["two"])

    with_batcher(gallery, action, max_waiting=5)


def test_other_computations_take_places_in_the_queue_too(gallery: Gallery, task: Task) -> None:
    async def action(batcher: Batcher, sizes: list[int]) -> None:
        first = [asyncio.ensure_future(batcher.compute("maps_luong", lambda trained: None)) for _ in range(2)]
        await asyncio.sleep(0)
        assert batcher.load == 1.0
        for refused in (batcher.compute("maps_luong", lambda trained: None), batcher.translate(task, ["one"])):
            with pytest.raises(QueueFull):
                await refused
        assert await asyncio.gather(*first) == [None, None]
        assert batcher.load == 0.0

    with_batcher(gallery, action, max_waiting=2)


def test_more_translations_than_the_run_searches_for_widen_the_beam(gallery: Gallery) -> None:
    async def action(batcher: Batcher, sizes: list[int]) -> None:
        [found] = await batcher.translate(Task("maps_luong", n_best=4), ["one two"])  # the run's own beam is 2
        assert len(found.translations) == 4

    with_batcher(gallery, action)


def test_what_is_cancelled_while_it_waits_costs_nothing(gallery: Gallery, task: Task) -> None:
    async def action(batcher: Batcher, sizes: list[int]) -> None:
        gone = asyncio.ensure_future(batcher.translate(task, ["one"] * 3))
        await asyncio.sleep(0)
        gone.cancel()
        await batcher.translate(task, ["two"])
        assert sizes == [1]

    with_batcher(gallery, action)


class Steps:
    """Holds the batcher's searches in their first step until `go_on`, and says whether one was stopped."""

    def __init__(self, batcher: Batcher) -> None:
        self.begun, self.go_on, self.stopped, self._check = (
            threading.Event(),
            threading.Event(),
            False,
            batcher.between_steps,
        )
        batcher.between_steps = self

    def __call__(self, step: Step) -> None:
        self.begun.set()
        self.go_on.wait(10)
        try:
            self._check(step)
        except Abandoned:
            self.stopped = True
            raise


class Tensor:
    """Stands for the memory of a search."""


@pytest.mark.parametrize("as_batch", [True, False], ids=["batch", "computation"])
@pytest.mark.parametrize("error", [None, Mistake("refused"), KeyError("a bug")], ids=["left", "refused", "failed"])
def test_a_search_that_fails_frees_its_memory_at_once(
    gallery: Gallery, task: Task, error: Exception | None, as_batch: bool
) -> None:
    """Not only when the garbage is collected, because searches of 100 MB could follow each other until then."""
    freed: list[weakref.ref[Tensor]] = []

    async def action(batcher: Batcher, sizes: list[int]) -> None:
        begun, check = threading.Event(), batcher.between_steps

        def between_steps(step: Step | None = None) -> None:
            tensor = Tensor()
            freed.append(weakref.ref(tensor))
            begun.set()
            while error is None:
                check(step)
            raise error

        def search(trained: LoadedRun) -> list[int]:
            return best_translation(trained, [5, 6, 7], observe=between_steps)

        batcher.between_steps = between_steps
        asked = batcher.translate(task, ["one two"]) if as_batch else batcher.compute("maps_luong", search)
        request = asyncio.ensure_future(asked)
        await asyncio.to_thread(begun.wait, 10)
        if error is None:
            request.cancel()
        with pytest.raises(asyncio.CancelledError if error is None else type(error)):
            await request
        del request, asked
        batcher.between_steps = lambda step=None: None
        await batcher.compute("maps_luong", lambda _: None)

    gc.collect()
    gc.disable()
    try:
        with_batcher(gallery, action)
        assert freed
        assert [tensor() for tensor in freed] == [None] * len(freed)
    finally:
        gc.enable()


@pytest.mark.parametrize("how_many_leave", [1, 2])
def test_a_batch_stops_when_all_its_clients_have_left(gallery: Gallery, task: Task, how_many_leave: int) -> None:
    async def action(batcher: Batcher, sizes: list[int]) -> None:
        steps = Steps(batcher)
        both = [asyncio.ensure_future(batcher.translate(task, ["one two three"])) for _ in range(2)]
        await asyncio.to_thread(steps.begun.wait, 10)
        for each in both[:how_many_leave]:
            each.cancel()
        await asyncio.sleep(0)
        steps.go_on.set()
        found = await asyncio.gather(*both, return_exceptions=True)
        assert [isinstance(each, asyncio.CancelledError) for each in found] == [True, how_many_leave == 2]
        assert len(await batcher.translate(task, ["two"])) == 1, "the batcher goes on"
        assert sizes == [2, 1]
        assert steps.stopped == (how_many_leave == 2)

    with_batcher(gallery, action)


def test_a_computation_stops_when_its_client_has_left(gallery: Gallery, task: Task) -> None:
    async def action(batcher: Batcher, sizes: list[int]) -> None:
        steps = Steps(batcher)

        def search(trained: LoadedRun) -> list[int]:
            return best_translation(trained, [5, 6, 7], observe=batcher.between_steps)

        gone = asyncio.ensure_future(batcher.compute("maps_luong", search))
        await asyncio.to_thread(steps.begun.wait, 10)
        gone.cancel()
        await asyncio.sleep(0)
        steps.go_on.set()
        assert isinstance(await batcher.compute("maps_luong", search), list)
        assert steps.stopped

    with_batcher(gallery, action)


LONG = "one two three four five six seven eight nine ten"


@pytest.mark.parametrize("what", ["a sentence", "a computation"])
def test_a_long_text_lets_a_short_request_go_first(
    gallery: Gallery, task: Task, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """A short request that arrives during a long search is the next batch, whatever remains of the search."""
    monkeypatch.setattr(batchers, "_LONG", 10)

    async def alone(batcher: Batcher, sizes: list[int]) -> list[list[TranslatedLine]]:
        return [await batcher.translate(task, [text]) for text in (LONG, "one")]

    long_alone, short_alone = with_batcher(gallery, alone)

    async def action(batcher: Batcher, sizes: list[int]) -> None:
        steps = Steps(batcher)
        long = asyncio.ensure_future(batcher.translate(task, [LONG]))
        await asyncio.to_thread(steps.begun.wait, 10)
        other = asyncio.ensure_future(batcher.translate(task, [LONG]))
        short: asyncio.Future[object] = asyncio.ensure_future(
            batcher.translate(task, ["one"])
            if what == "a sentence"
            else batcher.compute(task.run, lambda run: short_alone)
        )
        done: list[object] = []
        for request in (long, short, other):
            request.add_done_callback(done.append)
        await asyncio.sleep(0)
        steps.go_on.set()
        assert [await long, await short, await other] == [long_alone, short_alone, long_alone]
        assert done == [short, long, other]
        assert sizes == ([1, 1, 1] if what == "a sentence" else [1, 1])

    with_batcher(gallery, action)


def test_a_long_prefix_lets_a_short_request_go_first(gallery: Gallery, task: Task) -> None:
    """A prefix takes as many steps as a translation of that length, however short the text is."""

    async def action(batcher: Batcher, sizes: list[int]) -> None:
        steps, done = Steps(batcher), list[object]()
        long = asyncio.ensure_future(batcher.translate(task, ["one"], [LONG]))
        await asyncio.to_thread(steps.begun.wait, 10)
        short = asyncio.ensure_future(batcher.translate(task, ["one"]))
        for request in (long, short):
            request.add_done_callback(done.append)
        await asyncio.sleep(0)
        steps.go_on.set()
        await asyncio.gather(long, short)
        assert done == [short, long]

    with_batcher(gallery, action)


def test_a_search_never_waits_for_the_event_loop(gallery: Gallery, task: Task) -> None:
    """A loop that is busy, or stops for good, must not keep the thread, for which the process waits when it ends."""

    async def action(batcher: Batcher, sizes: list[int]) -> None:
        steps = Steps(batcher)
        long = asyncio.ensure_future(batcher.translate(task, [LONG]))
        await asyncio.to_thread(steps.begun.wait, 10)
        short = asyncio.ensure_future(batcher.translate(task, ["one"]))
        await asyncio.sleep(0)
        steps.go_on.set()
        until = time.monotonic() + 60
        while len(sizes) < 2 and time.monotonic() < until:
            time.sleep(0.01)  # the loop takes no turn meanwhile
        assert sizes == [1, 1]
        assert [len(await request) for request in (short, long)] == [1, 1]

    with_batcher(gallery, action)


def test_no_sentence_is_lost_that_arrives_while_a_search_takes_others(gallery: Gallery, task: Task) -> None:
    class Slow(list[_QueuedSentence]):
        """Takes long between its last sentence and its end."""

        def __iter__(self) -> Iterator[_QueuedSentence]:
            yield from super().__iter__()
            begun.set()
            time.sleep(0.1)

    begun = threading.Event()

    async def action(batcher: Batcher, sizes: list[int]) -> None:
        batcher._dispatcher.cancel()  # as if a batch was being searched
        batcher._waiting = Slow()
        search = asyncio.create_task(asyncio.to_thread(batcher._let_others_go_first, batchers._Search(task.run, 2000)))
        await asyncio.to_thread(begun.wait, 10)
        request = asyncio.ensure_future(batcher.translate(task, ["one"]))
        await asyncio.sleep(0)
        await search
        assert [queued.sentence for queued in batcher._waiting] == ["one"]
        request.cancel()

    with_batcher(gallery, action)


def test_a_short_request_that_fails_does_not_disturb_the_long_text(gallery: Gallery, task: Task) -> None:
    async def action(batcher: Batcher, sizes: list[int]) -> None:
        steps = Steps(batcher)
        long = asyncio.ensure_future(batcher.translate(task, [LONG]))
        await asyncio.to_thread(steps.begun.wait, 10)
        wrong = asyncio.ensure_future(batcher.translate(Task("maps_luong", beam_size=-1), ["one"]))
        bug = asyncio.ensure_future(batcher.compute("maps_luong", lambda run: [][0]))
        await asyncio.sleep(0)
        steps.go_on.set()
        found = await asyncio.gather(wrong, bug, return_exceptions=True)
        assert [type(each) for each in found] == [Mistake, IndexError]
        assert len(await long) == 1

    with_batcher(gallery, action)


@pytest.mark.parametrize("text", [LONG[: len(LONG) // 2], "one two three"])
def test_who_goes_first_is_much_shorter_and_needs_the_same_run(gallery: Gallery, task: Task, text: str) -> None:
    async def action(batcher: Batcher, sizes: list[int]) -> None:
        steps = Steps(batcher)
        long = asyncio.ensure_future(batcher.translate(task, [LONG]))
        await asyncio.to_thread(steps.begun.wait, 10)
        other = Task("maps_transformer") if text == "one two three" else task
        short = asyncio.ensure_future(batcher.translate(other, [text]))
        await asyncio.sleep(0)
        steps.go_on.set()
        done: list[object] = []
        for request in (long, short):
            request.add_done_callback(done.append)
        await short
        assert done[0] is long

    with_batcher(gallery, action)


def test_those_who_go_first_get_half_of_the_time(gallery: Gallery, task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(batchers, "time", SimpleNamespace(monotonic=lambda: now))

    def takes_two_seconds() -> None:
        nonlocal now
        now += 2.0

    async def action(batcher: Batcher, sizes: list[int]) -> None:
        search, begun = batchers._Search(task.run, 2000), []
        for _ in range(2):
            batcher._computations.append(batchers._Computation(task.run, takes_two_seconds, Future()))
        nonlocal now
        for _ in range(10):
            batcher._let_others_go_first(search)
            begun.append(len(batcher._computations))
            now += 0.5
        assert begun == [1, 1, 1, 1, 0, 0, 0, 0, 0, 0]

    with_batcher(gallery, action)


@pytest.mark.parametrize("room", [True, False])
def test_a_long_computation_lets_all_others_go_first(
    gallery: Gallery, task: Task, monkeypatch: pytest.MonkeyPatch, room: bool
) -> None:
    """Sentences and computations are done between two of its passes, also for another run if it fits into memory."""
    monkeypatch.setattr(gallery, "max_models", 2 if room else 1)
    monkeypatch.setattr(batchers, "_MOST_AT_ONCE", 0.0)
    monkeypatch.setattr(batchers, "_LONG", 20)

    async def action(batcher: Batcher, sizes: list[int]) -> list[str]:
        order: list[str] = []
        begun, go_on, own = threading.Event(), threading.Event(), batcher._translated
        batcher._translated = lambda batch: order.append(batch[0].sentence) or own(batch)

        def long(run: LoadedRun) -> None:
            begun.set()
            go_on.wait(10)
            for _ in range(4):
                batcher.between_steps()
            order.append("long")

        def noted(run: str, name: str, *, long: bool = False) -> Awaitable[None]:
            return asyncio.ensure_future(batcher.compute(run, lambda _: order.append(name), long=long))

        requests = [asyncio.ensure_future(batcher.compute(task.run, long, long=True))]
        await asyncio.to_thread(begun.wait, 10)
        requests += [noted(task.run, "next long", long=True), noted("maps_transformer", "other run")]
        requests += [noted(task.run, "short")]
        requests += [asyncio.ensure_future(batcher.translate(task, [text])) for text in ("one two", LONG)]
        await asyncio.sleep(0.05)  # so that the next batch is due, and the thread has to do the long computation
        go_on.set()
        await asyncio.gather(*requests)
        return order

    first = ["other run", "one two", "short", "long"] if room else ["short", "one two", "long"]
    last = ["next long", LONG] if room else ["next long", "other run", LONG]
    assert with_batcher(gallery, action) == first + last


@pytest.mark.parametrize(
    ("alone", "others", "first", "then"),
    [
        # Of 0.5 s, the other took 0.4, so the long computation then has its fifth.
        (0.0, 0.4, 1, [(0.0, 0), (0.09, 0), (0.011, 1)]),
        # It would have its fifth after 2 s, which is too long.
        (0.0, 8.0, 1, [(0.0, 0), (0.249, 0), (0.002, 1)]),
        # It has had its fifth of 5 s already, so all go first that are waiting until then.
        (1.0, 1.5, 3, [(0.0, 0), (0.12, 0), (0.006, 1)]),
        # Its fifth of 500 s would be too long for those who wait for the computation: it is that of 12.5 s.
        (100.0, 4.0, 3, [(0.0, 0), (0.249, 0), (0.002, 1)]),
    ],
)
def test_a_long_computation_gets_a_fifth_of_the_time(
    gallery: Gallery,
    monkeypatch: pytest.MonkeyPatch,
    alone: float,
    others: float,
    first: int,
    then: list[tuple[float, int]],
) -> None:
    """Others go first as soon as it has its fifth, or after a quarter of a second."""
    now = 0.0
    monkeypatch.setattr(batchers, "time", SimpleNamespace(monotonic=lambda: now))

    def takes_its_time() -> None:
        nonlocal now
        now += others

    async def action(batcher: Batcher, sizes: list[int]) -> None:
        nonlocal now
        waiting = batcher._computations
        long = batchers._LongComputation(gallery)
        now += alone
        waiting.extend(batchers._Computation("maps_luong", takes_its_time, Future()) for _ in range(5))
        batcher._let_others_go_first(long)
        assert len(waiting) == 5 - first
        for seconds, ran in then:
            now += seconds
            left = len(waiting)
            batcher._let_others_go_first(long)
            assert left - len(waiting) == ran

    with_batcher(gallery, action)


def test_an_error_reaches_only_those_who_asked_for_it(gallery: Gallery, task: Task) -> None:
    async def action(batcher: Batcher, sizes: list[int]) -> None:
        wrong = batcher.translate(Task("maps_luong", beam_size=-1), ["one"])
        found = await asyncio.gather(wrong, batcher.translate(task, ["one"]), return_exceptions=True)
        assert isinstance(found[0], ValueError)
        assert found[1][0].translations[0].text is not None

    with_batcher(gallery, action)


def test_a_panic_that_is_no_exception_leaves_the_batcher_at_work(
    gallery: Gallery, task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Panic(BaseException):
        """As pyo3's, of a library written in Rust."""

    def load(name: str) -> LoadedRun:
        raise Panic

    async def action(batcher: Batcher, sizes: list[int]) -> None:
        with monkeypatch.context() as planted:
            planted.setattr(gallery, "load", load)
            with pytest.raises(Panic):
                await batcher.translate(task, ["one"])
        [sentence] = await asyncio.wait_for(batcher.translate(task, ["one"]), 60)
        assert sentence.translations

    with_batcher(gallery, action)


def test_the_least_recently_used_model_is_dropped(gallery: Gallery) -> None:
    first = gallery.load("maps_luong")
    assert gallery.load("maps_luong") is first
    gallery.load("maps_transformer")
    assert gallery.number_loaded == 1
    assert gallery.load("maps_luong") is not first


def test_a_model_that_the_gallery_drops_is_freed(gallery: Gallery, task: Task) -> None:
    """One of the two runs fits into memory."""

    async def action(batcher: Batcher, sizes: list[int]) -> None:
        await batcher.translate(task, ["one"])
        model = weakref.ref(gallery.load(task.run).model)
        await batcher.compute("maps_transformer", lambda trained: None)
        gc.collect()
        assert model() is None

    with_batcher(gallery, action)


@pytest.mark.parametrize("translates", [True, False])
def test_the_old_version_of_a_run_is_freed_when_the_new_one_is_loaded(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, translates: bool
) -> None:
    """Not only at a later translation: an idle server would keep two models."""
    shutil.copytree(folder / "maps_luong", tmp_path / "run")
    task = Task("run")

    async def action(batcher: Batcher, sizes: list[int]) -> None:
        await batcher.translate(task, ["one"])
        gc.collect()
        model, kept = weakref.ref(batcher.gallery.load("run").model), list[bool]()

        def return_memory() -> None:
            gc.collect()
            kept.append(model() is not None)

        monkeypatch.setattr("nmt.serving.gallery.return_memory", return_memory)
        monkeypatch.setattr("nmt.serving.batcher.return_memory", return_memory)
        metrics = tmp_path / "run" / "metrics.json"
        metrics.write_text(metrics.read_text(encoding="utf-8") + "\n", encoding="utf-8")
        if translates:
            await batcher.translate(task, ["one"])
        else:
            await batcher.compute("run", lambda run: None)
        assert kept, "the run was loaded again"
        assert not kept[-1]

    with_batcher(Gallery([tmp_path / "run"], "cpu", "float32", max_models=1), action)
