"""What signals do to a command, and what happens to its output when its terminal is gone."""

import _thread
import os
import signal
import sys
import threading
import weakref
from collections.abc import Callable
from functools import partial
from operator import methodcaller
from types import FrameType
from typing import NoReturn

INTERRUPTED = 130
"""The exit code after Ctrl-C."""
STOP_SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2") if hasattr(signal, name)
)
"""Signals that end a command, besides SIGINT: a scheduler sends SIGTERM, SIGUSR1 or SIGUSR2, a lost terminal SIGHUP."""


class EndedBySignal(SystemExit):
    """Raised by the handler of a signal to end the command."""

    def __init__(self, code: int, signum: int) -> None:
        super().__init__(code)
        self.signum = signum


class Ending:
    """A handler that ends the command: KeyboardInterrupt for SIGINT, EndedBySignal with `code` for any other signal."""

    def __init__(self, code: int) -> None:
        self._code = code
        self.received: int | None = None

    def __call__(self, signum: int, frame: FrameType | None) -> NoReturn:
        self.received = signum
        if signum == signal.SIGINT:
            raise KeyboardInterrupt
        raise EndedBySignal(self._code, signum)


def received_signal() -> int | None:
    """The number of a signal whose `Ending` has been called: an error afterwards may be what a library made of that.

    safetensors turns a KeyboardInterrupt, while it loads weights, into a ValueError.
    """
    handlers = map(signal.getsignal, (signal.SIGINT, *STOP_SIGNALS))
    return next((handler.received for handler in handlers if isinstance(handler, Ending) and handler.received), None)


def on_stop_signals(handler: Callable[[int, FrameType | None], object] | signal.Handlers) -> None:
    """Calls `handler` on each of STOP_SIGNALS, except those that nohup or a shell has told the process to ignore."""
    for number in STOP_SIGNALS:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, handler)


def keep_signals_in_deletions() -> None:
    """Makes a signal end the command even if its handler raises while Python deletes an object.

    Python only prints what a `__del__` method or the callback of a weak reference raises, and goes on. Afterwards, the
    handler is called again.
    """
    if not isinstance(sys.unraisablehook, _KeptSignals):
        sys.unraisablehook = _KeptSignals(sys.unraisablehook)


class _KeptSignals:
    """Takes what Python cannot raise: a signal's exception is raised later, anything else goes to the former hook."""

    def __init__(self, former: Callable[["sys.UnraisableHookArgs"], object]) -> None:
        self._former = former
        self._last: _Repeated | None = None

    def __call__(self, unraisable: "sys.UnraisableHookArgs") -> None:
        error = unraisable.exc_value
        if isinstance(error, EndedBySignal):
            number = signal.Signals(error.signum)
        elif isinstance(error, KeyboardInterrupt):
            number = signal.SIGINT
        else:
            self._former(unraisable)
            return
        # The handler would run before the next line of this function, and what it raises here would be lost too. So
        # the signal is repeated when the function's variables are deleted, by callables without Python code.
        variable = _Referent()
        self._last = _Repeated(variable, methodcaller("repeat"))
        self._last.repeat = partial(_thread.interrupt_main, number)


class _Referent:
    """An object that can have weak references."""


class _Repeated(weakref.ref[_Referent]):
    """A weak reference that calls its `repeat` when its referent is deleted."""

    repeat: Callable[[], None]


def discard_output_to_lost_terminal() -> None:
    """Sends standard output and standard error to /dev/null if they are a terminal that is gone.

    Otherwise the next line of a progress bar would raise an error.
    """
    for descriptor in (1, 2):
        try:
            os.write(descriptor, b"")  # writes nothing, but fails on a terminal that is gone
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)


class EndingBlockedCalls:
    """From its creation to `close`, a stop signal or Ctrl-C ends the process even if a library's call blocks it.

    Python calls a signal's handler only between its own instructions: a process that waits inside a library, as for
    other machines, would not react. So a thread waits for signals, too. If the main thread has not reacted by itself
    after `patience` seconds, the thread ends the process with `code`. It must be created in the main thread.
    """

    def __init__(self, code: int, patience: float = 1.0) -> None:
        self._code, self._patience = code, patience
        self._closed = threading.Event()
        self._read, self._write = os.pipe()
        os.set_blocking(self._write, False)
        # The interpreter writes the number of each signal to this file at once, whatever the main thread does.
        self._former = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Ends the watch; may be called again."""
        if not self._closed.is_set():
            self._closed.set()
            signal.set_wakeup_fd(self._former)
            os.close(self._write)  # so that the thread reads the end of the pipe
            self._thread.join()
            os.close(self._read)

    def _watch(self) -> None:
        while number := os.read(self._read, 1):
            if number[0] not in (signal.SIGINT, *STOP_SIGNALS) or self._closed.wait(self._patience):
                continue
            name = signal.Signals(number[0]).name
            os.write(2, f"{name}: ended while waiting for other processes\n".encode())
            os._exit(INTERRUPTED if number[0] == signal.SIGINT else self._code)


def leave_on_interrupt() -> None:
    """While a command starts, Ctrl-C ends the process at once: libraries turn a KeyboardInterrupt in an import into
    other errors.
    """
    if signal.getsignal(signal.SIGINT) == signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)


def raise_on_interrupt() -> None:
    """Ends what `leave_on_interrupt` began: Ctrl-C raises KeyboardInterrupt again."""
    if signal.getsignal(signal.SIGINT) == _leave:
        signal.signal(signal.SIGINT, Ending(INTERRUPTED))


def _leave(signum: int, frame: FrameType | None) -> NoReturn:
    os.write(2, b"interrupted\n")
    os._exit(INTERRUPTED)
