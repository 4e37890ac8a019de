"""Several processes search as one does, and none outlives the command."""

import json
import multiprocessing
import os
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
import torch
from grids import covering
from processes import children_of, is_gone

from nmt.decoding.beam import BeamSearch
from nmt.decoding.binding import bind
from nmt.decoding.translator import Translator
from nmt.decoding.workers import Workers, _received, _Worker
from nmt.errors import CheckFailed, Mistake
from nmt.runs.load import load_run
from nmt.runs.search import build_translator

pytestmark = pytest.mark.unchecked

LOG_PROB = 64 * torch.finfo(torch.float32).eps  # as in tests/models/test_laws.py
ENDED = {signal.SIGKILL: -9, signal.SIGTERM: 143, signal.SIGINT: 130}
"""The exit code of a command after each signal."""
SOURCES = [[4 + (7 * row + column) % 60 for column in range(1 + row % 9)] for row in range(40)]


def square(number: int) -> int:
    if number == 13:
        os.kill(os.getpid(), signal.SIGKILL)
    if number == 14:
        sys.exit(3)
    if number < 0:
        return int("minus")
    return number**2


class Unpicklable(Exception):  # noqa: N818
    def __init__(self, number: int, word: str) -> None:
        super().__init__("a number and a word")


def refuse(number: int) -> int:
    raise Unpicklable(number, "word")


@pytest.mark.parametrize("count", [0, 1, 2, 9])
def test_results_come_in_the_order_of_the_items(count: int) -> None:
    workers = Workers(3, square)
    for _ in range(2):
        assert [*workers.map(range(count))] == [number**2 for number in range(count)]
    workers.close()
    assert [*workers.map([3])] == [9]
    workers.close()
    assert not multiprocessing.active_children()


def test_an_iterator_that_is_left_ends_the_workers() -> None:
    workers = Workers(2, square)
    for _ in workers.map([2] * 100):  # any of them may be computed before the first result is read
        break
    until(lambda: not multiprocessing.active_children())
    assert [*workers.map([2, 3])] == [4, 9]
    del workers
    until(lambda: not multiprocessing.active_children())


def test_errors_are_those_of_one_process() -> None:
    """A mistake stays one; what is wrong in the program does not become one, and tells where it was raised."""
    with pytest.raises(Mistake, match=r"search.beam_size is 0"):
        list(Workers(2, BeamSearch).map([2, 0, 3]))
    with pytest.raises(ValueError, match="invalid literal") as bug:
        list(Workers(2, square).map([2, -1, 3]))
    assert not isinstance(bug.value, Mistake)
    assert "in square" in bug.value.__notes__[0]
    with pytest.raises(RuntimeError, match=r"^Unpicklable: a number and a word") as bug:
        list(Workers(2, refuse).map([2]))
    assert "in refuse" in bug.value.__notes__[0]
    assert not multiprocessing.active_children()


def test_a_worker_that_ends_is_reported() -> None:
    with pytest.raises(CheckFailed, match=r"^A worker was killed, probably because memory ran out: use fewer workers"):
        list(Workers(2, square).map([2, 13, 3]))
    with pytest.raises(CheckFailed, match=r"^A worker ended with exit code 3: use workers=1 to find out why"):
        list(Workers(2, square).map([2, 14, 3]))
    assert not multiprocessing.active_children()


def test_a_worker_that_ended_between_two_calls_is_reported() -> None:
    workers = Workers(2, square)
    list(workers.map([2, 3]))
    for process in multiprocessing.active_children():
        process.terminate()
        process.join()
    with pytest.raises(CheckFailed, match=r"^A worker was ended by signal 15: use workers=1 to find out why"):
        list(workers.map([2, 3]))
    assert [*workers.map([2, 3])] == [4, 9]
    workers.close()


def halved_result(connection: Connection) -> None:
    """Announces 1,000 bytes, writes one and ends."""
    os.write(connection.fileno(), struct.pack("!i", 1000) + b"x")


def test_a_worker_that_ended_while_it_sent_a_result_is_reported() -> None:
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(target=halved_result, args=(theirs,))
    process.start()
    theirs.close()
    with pytest.raises(CheckFailed, match=r"^A worker ended with exit code 0"):
        _received(_Worker(process, ours))


def product(size: int) -> float:
    return float((torch.ones(size, size) @ torch.ones(size, size)).sum())


def test_workers_compute_although_their_parent_has_had_threads() -> None:
    """A worker with a second thread would wait forever for the parent's."""

    def give_up(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(60)
    torch.set_num_threads(2)
    try:
        expected = product(600)
        assert [*Workers(2, product, partial(torch.set_num_threads, 1)).map([600, 600, 600])] == [expected] * 3
    finally:
        torch.set_num_threads(1)
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("search", ["beam", "sampling"])
def test_workers_find_what_one_process_finds(finished: str, session_corpus: Path, search: str) -> None:
    loaded = load_run(session_corpus / "run", "cpu")
    run = loaded._replace(model=loaded.model.double())
    samples = {"_target_": "nmt.decoding.sampling.Sampling", "samples": 3, "seed": 2}
    asked = {"n_best": 2} if search == "beam" else samples
    alone, together = (build_translator([run], asked, batch_tokens=40, workers=workers) for workers in (1, 3))
    for sources in (SOURCES, SOURCES[:2], SOURCES[:1], [[]], []):
        prefixes = [[5], []] * (len(sources) // 2) if len(sources) > 1 else None
        expected, found = alone.search_ids(sources, prefixes), together.search_ids(sources, prefixes)
        assert [[each.ids for each in best] for best in found] == [[each.ids for each in best] for best in expected]
        for mine, other in zip(found, expected, strict=True):
            # Other batches have other roundings of float64, and each log p is returned in float32.
            bound = [(len(each.ids) + 1) * LOG_PROB for each in other]
            assert all(abs(a.log_prob - b.log_prob) <= c for a, b, c in zip(mine, other, bound, strict=True))
    together.close()


def test_what_cannot_have_workers_is_refused(
    finished: str, session_corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = load_run(session_corpus / "run", "cpu")
    search = bind(BeamSearch(), run.model)
    with pytest.raises(Mistake, match=r"workers=2 needs the CPU, but device is cuda: add device=cpu, or leave out"):
        build_translator([run._replace(device=torch.device("cuda"))], workers=2)
    with pytest.raises(Mistake, match=r"A search with workers=2 cannot be observed"):
        build_translator([run], workers=2, observe=print)
    with pytest.raises(Mistake, match=r"workers is 0; it must be at least 1"):
        Translator(search, run.tokenizers, workers=0)
    monkeypatch.setattr(multiprocessing, "get_all_start_methods", lambda: ["spawn"])
    with pytest.raises(Mistake, match=r"workers is 2, but this system cannot fork processes: use workers=1"):
        Translator(search, run.tokenizers, workers=2)


def test_an_engine_is_refused_before_the_run_is_loaded(command: Callable) -> None:
    found = command("translate", "run_dir=nowhere", "workers=2", "engine=onnx")
    assert (found.code, found.errors) == (
        2,
        "error: workers=2 needs engine=torch, because engine=onnx already uses all threads: leave out one of them.\n",
    )


def test_an_evaluation_has_workers(finished: str, session_corpus: Path, command: Callable, corpus: Path) -> None:
    made = {}
    for workers in (1, 2):  # batches of at most 20 tokens are the same for both, and so are the roundings
        arguments = f"run_dir={session_corpus / 'run'}", "split=valid", f"workers={workers}", f"out=scores{workers}"
        found = command("evaluate", *arguments, "batch_tokens=20")
        assert found.code == 0, found.errors
        record = json.loads((corpus / f"scores{workers}" / "scores.json").read_text(encoding="utf-8"))
        assert record["workers"] == workers
        made[workers] = record["made_with"], (corpus / f"scores{workers}" / "hypotheses.txt").read_text()
    assert made[1] == made[2]


@pytest.mark.skipif(not Path("/proc/self/stat").is_file(), reason="looks for processes in /proc")
@pytest.mark.parametrize(
    ("number", "busy"), covering([(number, busy) for number in ENDED for busy in (False, True)], pairs=False)
)
def test_a_command_that_ends_takes_its_workers_with_it(
    finished: str, session_corpus: Path, start: Callable, number: int, busy: bool
) -> None:
    limit = "search.constraints.max_length=2000" if busy else "search.constraints.max_length=9"
    ratio = "search.constraints.max_length_ratio=1000"
    command = start("translate", f"run_dir={session_corpus / 'run'}", "workers=2", limit, ratio, stdin=subprocess.PIPE)
    command.stdin.write("\n" + "one two three\n" * 20)  # windows of 1, 4 and 16 lines
    command.stdin.flush()
    until(lambda: len(children_of(command.pid)) == 2)
    workers = children_of(command.pid)
    for process in [*(workers if number == signal.SIGINT else ()), command.pid]:  # as Ctrl-C in a terminal does
        os.kill(process, number)
    assert command.wait(timeout=60) == ENDED[number]
    until(lambda: all(is_gone(worker) for worker in workers))
    assert "Traceback" not in command.stderr.read()


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 120
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)
