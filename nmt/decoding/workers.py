"""Worker processes that search batches in parallel."""

import errno
import multiprocessing
import os
import signal
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, NamedTuple

from nmt.errors import CheckFailed, Mistake, process_ended, sendable
from nmt.signals import on_stop_signals


class _Worker(NamedTuple):
    process: BaseProcess
    connection: Connection
    """Sends items to the worker and receives their results."""


class Workers:
    """`number` processes, each with one thread, that apply `work` to items.

    They are forked when the first items arrive, and each calls `begin` first. They share the memory of the model with
    this process, but later changes to the model do not reach them. They end when `close` is called, when an error is
    raised, when an iterator is abandoned, and when this process ends for any reason. The next `map` starts new ones.

    Raises Mistake if `number` is below 1, or if the system cannot fork.
    """

    def __init__(self, number: int, work: Callable[[Any], Any], begin: Callable[[], None] | None = None) -> None:
        if number < 1:
            raise Mistake(f"workers is {number}; it must be at least 1.")
        if "fork" not in multiprocessing.get_all_start_methods():
            raise Mistake(f"workers is {number}, but this system cannot fork processes: use workers=1.")
        self.number, self.work, self.begin = number, work, begin
        self._workers: list[_Worker] = []
        weakref.finalize(self, _end, self._workers)

    def map(self, items: Sequence[Any]) -> Iterator[Any]:
        """The results, in the order of the items.

        Raises whatever `work` raises, and CheckFailed if the workers cannot be started or one of them ends.

        Read one iterator to its end before you request the next.
        """
        try:
            if items and not self._workers:
                self._start()
            yield from self._results(items)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Ends the workers at once."""
        _end(self._workers)

    def _results(self, items: Sequence[Any]) -> Iterator[Any]:
        idle = [*self._workers]
        busy: dict[Any, tuple[_Worker, int]] = {}
        results: dict[int, Any] = {}
        begun = 0
        for number in range(len(items)):
            while number not in results:
                while idle and begun < len(items):
                    worker = idle.pop()
                    try:
                        worker.connection.send(items[begun])
                    # errors.report would take a broken pipe for a closed standard output.
                    except (BrokenPipeError, ConnectionResetError):
                        raise _ended(worker) from None
                    busy[worker.connection] = worker, begun
                    begun += 1
                for connection in wait([*busy]):
                    worker, index = busy.pop(connection)
                    results[index] = _received(worker)
                    idle.append(worker)
            yield results.pop(number)

    def _start(self) -> None:
        fork = multiprocessing.get_context("fork")
        # Ctrl-C reaches every process of the terminal. The workers inherit this mask, so only the parent reacts.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        try:
            for _ in range(self.number):
                ours, theirs = fork.Pipe()
                process = fork.Process(target=_serve, args=(self.work, self.begin, theirs), daemon=True)
                process.start()
                theirs.close()
                self._workers.append(_Worker(process, ours))
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.ENOMEM, errno.EMFILE):
                raise
            raise CheckFailed(
                f"{self.number} workers could not be started ({error.strerror}): use fewer workers."
            ) from error
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end(workers: list[_Worker]) -> None:
    for worker in workers:
        worker.process.kill()
    for worker in workers:
        worker.process.join()
        worker.connection.close()
    workers.clear()


def _received(worker: _Worker) -> Any:
    """The result that a worker has sent. Raises the error if the worker has sent one instead."""
    try:
        result, error = worker.connection.recv()
    except (EOFError, OSError):  # it ended before it had sent the whole result
        raise _ended(worker) from None
    if error is not None:
        raise error
    return result


def _ended(worker: _Worker) -> CheckFailed:
    """The error for a worker that ended although it should still be running."""
    worker.process.join()
    return CheckFailed(
        process_ended(
            "A worker",
            worker.process.exitcode or 0,
            if_killed="use fewer workers or a smaller batch_tokens",
            otherwise="use workers=1 to find out why",
        )
    )


def _serve(work: Callable[[Any], Any], begin: Callable[[], None] | None, connection: Connection) -> None:
    """The main loop of a worker: receives items, and sends back a result or an error for each."""
    on_stop_signals(signal.SIG_DFL)
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    if begin is not None:
        begin()
    while True:
        item = connection.recv()
        try:
            connection.send((work(item), None))
        except Exception as error:
            connection.send((None, sendable(error)))


def _exit_with_parent() -> None:
    if (parent := multiprocessing.parent_process()) is not None:
        parent.join()
    os._exit(1)
