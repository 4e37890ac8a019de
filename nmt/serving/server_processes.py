"""A server of several processes, which accept connections from one socket. Ended ones are replaced."""

import logging
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from tempfile import TemporaryDirectory
from typing import NamedTuple

from nmt.cores import usable_cores
from nmt.errors import CheckFailed, Mistake, exit_code

logger = logging.getLogger(__name__)

METRICS_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
"""The environment variable with which prometheus_client adds up the metrics of several processes."""
_SECONDS_TO_RETRY = 5.0
_SECONDS_TO_STOP = 5.0
"""What a worker gets for stopping, besides the time that its requests may take."""

Work = Callable[[Callable[[], None]], None]
"""work(ready) serves until it is stopped by SIGTERM, and calls ready() before it answers requests."""


class _Worker(NamedTuple):
    process: BaseProcess
    reports: Connection
    """Says that the worker is ready; ends if it ends."""


def check_can_fork(number: int) -> None:
    """Raises Mistake if the system cannot fork."""
    if "fork" not in multiprocessing.get_all_start_methods():
        raise Mistake(f"workers is {number}, but this system cannot fork processes: use workers=1.")


def run_workers(work: Work, number: int, first_ready: Callable[[], None], seconds: float) -> None:
    """Calls `work` in `number` processes until a signal ends this one; then they have `seconds` to finish requests.

    The others start when the first one is ready, so an export is made, and a mistake is reported, only once. One that
    ends is replaced. If this process is killed, they stop too. Each has an equal share of the cores, unless the user
    has set OMP_NUM_THREADS. Must be called before torch is imported, because its threads do not survive a fork. Raises
    SystemExit with the exit code of the first worker, or CheckFailed if it is killed, before it is ready.
    """
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, usable_cores() // number)))
    workers: list[_Worker] = []
    lives, held = os.pipe()  # a worker's end of it is at its end when this process has ended
    with TemporaryDirectory(prefix="nmt-metrics-") as folder:
        os.environ[METRICS_FOLDER] = folder
        try:
            workers.append(_started(work, lives, held))
            [first] = workers
            try:
                first.reports.recv_bytes()
            except EOFError:
                first.process.join()
                code = first.process.exitcode or 0
                if code > 0:
                    sys.exit(code)  # it has said why
                raise CheckFailed(f"The first worker ended before it was ready (exit code {code}).") from None
            first_ready()
            not_before = 0.0
            while True:
                while len(workers) < number and time.monotonic() >= not_before:
                    workers.append(_started(work, lives, held))
                pause = _SECONDS_TO_RETRY if len(workers) < number else None
                wait([worker.process.sentinel for worker in workers], pause)
                for worker in [worker for worker in workers if not worker.process.is_alive()]:
                    workers.remove(worker)
                    _forget(worker)
                    not_before = time.monotonic() + _SECONDS_TO_RETRY
        finally:
            _stop(workers, seconds)
            os.close(held)
            os.close(lives)


def _started(work: Work, lives: int, held: int) -> _Worker:
    context = multiprocessing.get_context("fork")
    reports, ours = context.Pipe(duplex=False)
    process = context.Process(target=_run, args=(work, ours, lives, held))
    process.start()
    ours.close()
    return _Worker(process, reports)


def _run(work: Work, reports: Connection, lives: int, held: int) -> None:
    """What a worker does."""
    os.setsid()  # Ctrl-C in a terminal reaches only the process that stops the workers
    os.close(held)
    threading.Thread(target=_stop_with_parent, args=(lives,), daemon=True).start()

    def ready() -> None:
        reports.send_bytes(b"ready")
        reports.close()

    def action() -> int:
        work(ready)
        return 0

    sys.exit(exit_code(action))


def _stop_with_parent(lives: int) -> None:
    os.read(lives, 1)  # returns at the end of the parent
    os.kill(os.getpid(), signal.SIGTERM)


def _forget(worker: _Worker) -> None:
    from prometheus_client.multiprocess import mark_process_dead

    worker.process.join()
    logger.warning(
        "Worker process %d has ended (exit code %d); another one is started in %g s.",
        worker.process.pid,
        worker.process.exitcode,
        _SECONDS_TO_RETRY,
    )
    # Its counts stay. What it last said of its queue and models does not.
    mark_process_dead(worker.process.pid, os.environ[METRICS_FOLDER])
    worker.reports.close()


def _stop(workers: list[_Worker], seconds: float) -> None:
    for worker in workers:
        worker.process.terminate()
    deadline = time.monotonic() + seconds + _SECONDS_TO_STOP
    for worker in workers:
        worker.process.join(max(0.0, deadline - time.monotonic()))
        if worker.process.is_alive():
            with suppress(OSError):
                worker.process.kill()
            worker.process.join()
