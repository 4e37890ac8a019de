"""How a command ends: 0, 1 for a failure, 2 for a user's mistake, 130, 143 and 141 when it is stopped from outside."""

import errno
import os
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import NoReturn

_PACKAGE = Path(__file__).resolve().parent
MISTAKES = (ValueError, FileNotFoundError, FileExistsError, NotADirectoryError, IsADirectoryError, PermissionError)
INTERRUPTED, TERMINATED, CLOSED_PIPE = 130, 143, 141
FULL_DISK = (errno.ENOSPC, errno.EDQUOT)


class CheckFailed(Exception):  # noqa: N818
    """A failure that is told in one sentence: what the user asked to be checked does not hold, or a training ended."""


def is_mistake(error: BaseException) -> bool:
    """Whether the user can mend it: such an error comes from a line of this package, not from a library's."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = bool(frames) and Path(frames[-1].filename).resolve().is_relative_to(_PACKAGE)
    return isinstance(error, MISTAKES) and ours


def report(error: BaseException, prefix: str = "error") -> int:
    """The exit code of an error; prints it to standard error, a mistake as one sentence, all else with a traceback."""
    if isinstance(error, BrokenPipeError):
        # The reader wants no more. The interpreter flushes standard output once again when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return CLOSED_PIPE
    if is_mistake(error):
        print(f"{prefix}: {error}", file=sys.stderr)
        return 2
    if isinstance(error, PermissionError) and error.filename:
        print(f"{prefix}: There is no right to use {error.filename}: change that, or name another.", file=sys.stderr)
        return 2
    if isinstance(error, (CheckFailed, FloatingPointError)):
        print(f"{prefix}: {error}", file=sys.stderr)
        return 1
    if isinstance(error, OSError) and error.errno in FULL_DISK:
        print(f"{prefix}: {error}: make room, and run the command again.", file=sys.stderr)
        return 1
    traceback.print_exception(error)
    print(f"{prefix}: {type(error).__name__}", file=sys.stderr)
    return 1


def exit_code(action: Callable[[], int]) -> int:
    """The exit code of an action that returns one, whatever stops it; prints the error that does."""
    for each in (signal.SIGTERM, getattr(signal, "SIGUSR1", signal.SIGTERM)):
        signal.signal(each, _terminate)
    try:
        code = action()
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        return report(error)


def _terminate(signum: int, frame: FrameType | None) -> NoReturn:
    raise SystemExit(TERMINATED)
