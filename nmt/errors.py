"""The errors that are reported to the user in one sentence, and the exit codes of the commands.

0: success, 1: failure, 2: a user's mistake, 130: interrupted, 143: terminated, 141: closed pipe.
"""

import errno
import os
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import NoReturn

MISTAKES = (ValueError, FileNotFoundError, FileExistsError, NotADirectoryError, IsADirectoryError, PermissionError)
INTERRUPTED, TERMINATED, CLOSED_PIPE = 130, 143, 141
FULL_DISK = (errno.ENOSPC, errno.EDQUOT)

_PACKAGE = Path(__file__).resolve().parent
_ANOTHER = "Choose another path."
# What a user can do when the operating system rejects a path.
_REMEDIES = {
    errno.EACCES: "Fix its permissions.",
    errno.EPERM: "Fix its permissions.",
    errno.ENOENT: _ANOTHER,
    errno.EEXIST: _ANOTHER,
    errno.ENOTDIR: _ANOTHER,
    errno.EISDIR: _ANOTHER,
    errno.ELOOP: _ANOTHER,
    errno.ENAMETOOLONG: _ANOTHER,
    errno.EROFS: _ANOTHER,
}


class Mistake(ValueError):  # noqa: N818
    """A user's mistake. The message is one sentence with the value, what was expected, and the remedy."""


class CheckFailed(Exception):  # noqa: N818
    """A failure that is reported in one sentence, such as a failed check or a run that ended early."""


def is_mistake(error: BaseException) -> bool:
    """Whether an error is a user's mistake: one of MISTAKES, raised by this package and not by a library."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = bool(frames) and Path(frames[-1].filename).resolve().is_relative_to(_PACKAGE)
    return isinstance(error, MISTAKES) and ours


def report(error: BaseException, prefix: str = "error") -> int:
    """Prints an error to standard error, with a traceback only if it is unexpected, and returns the exit code."""
    if isinstance(error, BrokenPipeError):
        # The interpreter flushes standard output when it exits, which would fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return CLOSED_PIPE
    if isinstance(error, OSError) and error.filename is not None and error.errno in _REMEDIES:
        sentence, code = f"{error.strerror}: {error.filename}. {_REMEDIES[error.errno]}", 2
    elif is_mistake(error):
        sentence, code = str(error), 2
    elif isinstance(error, OSError) and error.errno in FULL_DISK:
        place = f": {error.filename}" if error.filename else ""
        sentence, code = f"{error.strerror}{place}. Free some space and run the command again.", 1
    elif isinstance(error, (CheckFailed, FloatingPointError)):
        sentence, code = str(error), 1
    else:
        traceback.print_exception(error)
        sentence, code = type(error).__name__, 1
    print(f"{prefix}: {sentence}", file=sys.stderr)
    return code


def exit_code(action: Callable[[], int]) -> int:
    """Runs an action and returns its exit code. An error that stops it is printed and determines the exit code."""
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
