"""Commands in processes of their own that start at once: forked from a server that has already imported torch and nmt.

A process like any other: it has a process id, three pipes, signals and an exit code. It differs from `python -m nmt.X`
only in what was imported before, which takes seconds every time. The programs that it starts import for themselves.
"""

# ruff: noqa: SIM115  the streams live as long as their process

import contextlib
import functools
import importlib
import itertools
import logging
import multiprocessing
import os
import pkgutil
import runpy
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any
from unittest import mock

TESTS = Path(__file__).parent
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["preloaded"])


class Forked:
    """A running command; has what the tests use of subprocess.Popen[str]."""

    def __init__(self, program: Callable[[], object], argv: list[str], folder: Path, stdin: int | None) -> None:
        """Calls `program` with `argv` as sys.argv; without subprocess.PIPE as `stdin`, standard input is empty."""
        pipes = [os.pipe() for _ in range(3)]
        self.stdin = open(pipes[0][1], "w", encoding="utf-8")
        self.stdout, self.stderr = (open(read, encoding="utf-8") for read, _ in pipes[1:])
        streams = [Connection(pipes[0][0], writable=False)]
        streams += [Connection(write, readable=False) for _, write in pipes[1:]]
        self.process = CONTEXT.Process(target=_run, args=(program, argv, str(folder), streams))
        _start_server()
        self.process.start()
        for stream in streams:
            stream.close()
        if stdin != subprocess.PIPE:
            self.stdin.close()

    @property
    def pid(self) -> int:
        assert self.process.pid is not None
        return self.process.pid

    @property
    def returncode(self) -> int | None:
        return self.process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self.process.join(timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired(str(self.process), timeout or 0)
        return self.returncode

    def communicate(self, text: str | None = None, timeout: float | None = None) -> tuple[str, str]:
        """Writes `text` to standard input and reads both outputs to their ends."""
        read: dict[str, str] = {}
        threads = [
            threading.Thread(target=lambda name, stream: read.update({name: stream.read()}), args=pair)
            for pair in (("output", self.stdout), ("errors", self.stderr))
            if not pair[1].closed
        ]
        for thread in threads:
            thread.start()
        if not self.stdin.closed:
            with contextlib.suppress(BrokenPipeError):  # it ended without reading
                self.stdin.write(text or "")
                self.stdin.close()
        self.wait(timeout)
        for thread in threads:
            thread.join()
        return read.get("output", ""), read.get("errors", "")

    def send_signal(self, number: int) -> None:
        if self.process.is_alive():
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def close(self) -> None:
        """Kills the process if it is still running, and closes its pipes."""
        self.kill()
        self.process.join()
        for stream in (self.stdin, self.stdout, self.stderr):
            with contextlib.suppress(BrokenPipeError):  # text that nobody has read
                stream.close()
        self.process.close()


@functools.cache
def _start_server() -> None:
    """Starts the server where it finds `preloaded`; it silently skips a module that it cannot import.

    Python 3.11 does not hand sys.path on to it.
    """
    folders = [str(TESTS), str(TESTS.parent), os.environ.get("PYTHONPATH", "")]
    with mock.patch.dict(os.environ, {"PYTHONPATH": os.pathsep.join(filter(None, folders))}):
        forkserver.ensure_running()


def _run(program: Callable[[], object], argv: list[str], folder: str, streams: list[Connection]) -> None:
    for number, stream in enumerate(streams):
        os.dup2(stream.fileno(), number)
        stream.close()
    sys.stdin, sys.stdout = open(0, encoding="utf-8"), open(1, "w", encoding="utf-8")
    sys.stderr = open(2, "w", encoding="utf-8", buffering=1, errors="backslashreplace")
    # A shell that starts the tests in the background has them ignore Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(folder)
    sys.argv = argv
    program()


def module(name: str) -> None:
    """What python -m does."""
    runpy.run_module(name, run_name="__main__", alter_sys=True)


def with_environment(variables: dict[str, str], program: Callable[[], object]) -> None:
    """A program with some environment variables."""
    os.environ.update(variables)
    program()


def with_launcher(folder: str, name: str, program: Callable[[], object]) -> None:
    """A program with one more of Hydra's launchers: a class in a folder, named 'module:class'."""
    from hydra.core.plugins import Plugins

    sys.path.insert(0, folder)
    Plugins.instance().register(pkgutil.resolve_name(name))
    program()


def joblib_forks(program: Callable[[], object]) -> None:
    """A program whose joblib workers are forked instead of started; like new ones, they have no handlers of logs."""
    from joblib.externals.loky import get_reusable_executor
    from joblib.externals.loky.backend import context

    with warnings.catch_warnings(action="ignore"):
        context.set_start_method("fork")
    os.register_at_fork(after_in_child=logging.getLogger().handlers.clear)
    try:
        program()
    finally:
        get_reusable_executor().shutdown(wait=True)  # a process of multiprocessing calls nothing at its exit


def signalled_training(name: str, number: int, step: int) -> None:
    """nmt.train or nmt.pretrain with a signal to itself as soon as a step is done."""
    from nmt.training.progress import Progress

    own = Progress.on_train_batch_end

    def signalled(self, trainer, *rest):
        own(self, trainer, *rest)
        if trainer.global_step == step:
            Progress.on_train_batch_end = own
            os.kill(os.getpid(), number)

    Progress.on_train_batch_end = signalled
    module(name)


def killed(name: str, at: str, number: int) -> None:
    """A command that kills itself when the function `at`, as 'module:name', is called for the `number`th time."""
    module_name, _, path = at.partition(":")
    owner: Any = importlib.import_module(module_name)
    *parents, attribute = path.split(".")
    for parent in parents:
        owner = getattr(owner, parent)
    own, calls = getattr(owner, attribute), itertools.count(1)

    def counted(*given: Any, **options: Any) -> Any:
        if next(calls) == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return own(*given, **options)

    setattr(owner, attribute, counted)
    module(name)
