"""What signals do to a command, and what happens to its output when its terminal is gone."""

import os
import signal
from collections.abc import Callable
from types import FrameType
from typing import NoReturn

INTERRUPTED = 130
"""The exit code after Ctrl-C."""
STOP_SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2") if hasattr(signal, name)
)
"""Signals that end a command, besides SIGINT: a scheduler sends SIGTERM, SIGUSR1 or SIGUSR2, a lost terminal SIGHUP."""


def on_stop_signals(handler: Callable[[int, FrameType | None], object] | signal.Handlers) -> None:
    """Calls `handler` on each of STOP_SIGNALS, except those that nohup or a shell has told the process to ignore."""
    for number in STOP_SIGNALS:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, handler)


def discard_output_to_lost_terminal() -> None:
    """Sends standard output and standard error to /dev/null if they are a terminal that is gone.

    Otherwise the next line of a progress bar would raise an error.
    """
    for descriptor in (1, 2):
        try:
            os.write(descriptor, b"")  # writes nothing, but fails on a terminal that is gone
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)


def leave_on_interrupt() -> None:
    """While a command starts, Ctrl-C ends the process at once: libraries turn a KeyboardInterrupt in an import into
    other errors.
    """
    if signal.getsignal(signal.SIGINT) == signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)


def raise_on_interrupt() -> None:
    """Ends what `leave_on_interrupt` began: Ctrl-C raises KeyboardInterrupt again."""
    if signal.getsignal(signal.SIGINT) == _leave:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _leave(signum: int, frame: FrameType | None) -> NoReturn:
    os.write(2, b"interrupted\n")
    os._exit(INTERRUPTED)
