"""Which errors are a user's mistake and which are bugs, what is printed for each, and the exit codes of the commands.

0: success, 1: failure, 2: a user's mistake, 130: interrupted, 143: terminated, 141: closed pipe.
"""

import errno
import os
import signal
import sys
import traceback
from collections.abc import Callable
from types import FrameType
from typing import Any, NoReturn

INTERRUPTED, TERMINATED, CLOSED_PIPE = 130, 143, 141
FULL_DISK = (errno.ENOSPC, errno.EDQUOT)
SHOW_TRACEBACK = "NMT_TRACEBACK"
"""The environment variable that, if set, shows the traceback of every error, including a user's mistakes."""

# What a user can do when the operating system rejects a path. A missing or an existing file is not in this table: a
# path that a user names is checked where it is used, so one that surprises the program is a bug.
_REMEDIES = {
    errno.EACCES: "Fix its permissions.",
    errno.EPERM: "Fix its permissions.",
    errno.ELOOP: "Choose another path.",
    errno.ENAMETOOLONG: "Choose another path.",
    errno.EROFS: "Choose another path.",
}


class TemplatedMessage(str):
    """A message made from a template and its values, so that a server can give it in another language."""

    template: str
    values: dict[str, Any]

    def __new__(cls, template: str, **values: Any) -> "TemplatedMessage":
        message = super().__new__(cls, template.format(**values))
        message.template, message.values = template, values
        return message


class Mistake(ValueError):  # noqa: N818
    """A user's mistake. The message is one sentence with the value, what was expected, and the remedy.

    Everything else is a bug, or a failure that only a traceback explains: never raise or catch something broader to
    get a sentence. An error of a library that only a user's value can cause is caught by its type where that value is
    used, and raised again as a Mistake `from` the original.
    """


class MissingFile(Mistake):
    """A file that the user needs is missing, not damaged."""


class CheckFailed(Exception):  # noqa: N818
    """A failure that is reported in one sentence, such as a failed check or a run that ended early."""


def report(error: BaseException, prefix: str = "error") -> int:
    """Prints an error to standard error and returns the exit code; anything unexpected is printed with its traceback.

    Expected are a Mistake, a CheckFailed, a path without permission or otherwise rejected by the operating system, and
    a full disk.
    """
    if isinstance(error, BrokenPipeError):
        # The interpreter flushes standard output when it exits, which would fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return CLOSED_PIPE
    expected = True
    if isinstance(error, Mistake):
        sentence, code = str(error), 2
    elif isinstance(error, OSError) and error.filename is not None and error.errno in _REMEDIES:
        sentence, code = f"{error.strerror}: {error.filename}. {_REMEDIES[error.errno]}", 2
    elif isinstance(error, OSError) and error.errno in FULL_DISK:
        file = f": {error.filename}" if error.filename else ""
        sentence, code = f"{error.strerror}{file}. Free some space and run the command again.", 1
    elif isinstance(error, CheckFailed):
        sentence, code = str(error), 1
    else:
        sentence, code, expected = type(error).__name__, 1, False
    if not expected or os.environ.get(SHOW_TRACEBACK):
        traceback.print_exception(error)
    print(f"{prefix}: {sentence}", file=sys.stderr)
    return code


def exit_code(action: Callable[[], int]) -> int:
    """Runs an action and returns its exit code. An error that stops it is printed and determines the exit code."""
    for number in (signal.SIGTERM, getattr(signal, "SIGUSR1", signal.SIGTERM)):
        signal.signal(number, _terminate)
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
