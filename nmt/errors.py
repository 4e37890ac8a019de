"""Which errors are a user's mistake and which are bugs, how messages are made printable, and the exit codes.

0: success, 1: failure, 2: a user's mistake, 130: interrupted, 143: terminated, 141: closed pipe.
"""

import errno
import os
import pickle
import re
import signal
import sys
import traceback
import unicodedata
from collections.abc import Callable
from typing import Any

from nmt.signals import INTERRUPTED, Ending, keep_signals_in_deletions, on_stop_signals, received_signal

TERMINATED, CLOSED_PIPE = 143, 141
_KILLED = -9  # SIGKILL, which Windows does not have
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


_UNPRINTABLE = {"Cc", "Cf", "Cs", "Zl", "Zp"}
"""Unicode's categories of characters that change how a terminal or a log shows the rest of a message."""
_JOINERS = "\u200c\u200d"  # in Persian words and in emoji
_LONGEST, _BEGINNING, _END = 2000, 1200, 700


def printable(text: str) -> str:
    """The text on one line: control and invisible characters escaped, the middle of a long text left out."""
    return shortened(escaped(text))


def escaped(text: str) -> str:
    """The text on one line, with escapes for control and invisible characters other than joiners."""
    if text.isprintable():
        return text
    return "".join(
        character.encode("unicode_escape").decode()
        if unicodedata.category(character) in _UNPRINTABLE and character not in _JOINERS
        else character
        for character in text
    )


def shortened(text: str) -> str:
    """The text, without its middle if it is long. Long words are shortened first: they are input, not the remedy."""
    if len(text) > _LONGEST:
        text = re.sub(r"\S{300,}", lambda word: f"{word[0][:200]} ... {word[0][-80:]}", text)
    return text if len(text) <= _LONGEST else f"{text[:_BEGINNING]} ... {text[-_END:]}"


class _Sentence(Exception):  # noqa: N818
    """An error whose message may contain anything that a stranger wrote, made printable."""

    def __init__(self, message: str) -> None:
        if isinstance(message, TemplatedMessage):
            values = {
                key: printable(value) if isinstance(value, str) else value for key, value in message.values.items()
            }
            super().__init__(TemplatedMessage(message.template, **values))
        else:
            super().__init__(printable(message))


class Mistake(_Sentence, ValueError):  # noqa: N818
    """A user's mistake. The message is one sentence with the value, what was expected, and the remedy.

    Everything else is a bug, or a failure that only a traceback explains: never raise or catch something broader to
    get a sentence. An error of a library that only a user's value can cause is caught by its type where that value is
    used, and raised again as a Mistake `from` the original.
    """


class MissingFile(Mistake):
    """A file that the user needs is missing, not damaged."""


class CheckFailed(_Sentence):
    """A failure that is reported in one sentence, such as a failed check or a run that ended early."""


def process_ended(process: str, code: int, if_killed: str, otherwise: str) -> str:
    """The message about a process that ended although it should still be running, with the remedy for each case."""
    if code == _KILLED:
        return f"{process} was killed, probably because memory ran out: {if_killed}."
    how = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
    return f"{process} {how}: {otherwise}."


def sendable(error: Exception) -> Exception:
    """The error with its traceback as a note, because pickling drops the traceback.

    If pickling would lose the error itself, it becomes a RuntimeError with its type, message and notes.
    """
    error.add_note("".join(traceback.format_exception(error)))
    try:
        if type(pickle.loads(pickle.dumps(error))) is type(error):
            return error
    except Exception as reason:  # a class's own pickling can fail in any way
        error.add_note(f"It was sent as a RuntimeError, because it cannot be pickled: {reason!r}")
    substitute = RuntimeError(f"{type(error).__name__}: {error}")
    for note in error.__notes__:
        substitute.add_note(note)
    return substitute


def report(error: BaseException, prefix: str = "error", *, after_signal: bool = False) -> int:
    """Prints an error to standard error and returns the exit code; anything unexpected is printed with its traceback.

    Expected are a Mistake, a CheckFailed, a path without permission or otherwise rejected by the operating system, and
    a full disk. `after_signal`: a signal ends the command, so only what is expected is printed.
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
        file = f": {error.filename}" if error.filename else _standard_output_if_full()
        sentence, code = f"{error.strerror}{file}. Free some space and run the command again.", 1
    elif isinstance(error, CheckFailed):
        sentence, code = str(error), 1
    else:
        sentence, code, expected = type(error).__name__, 1, False
    if os.environ.get(SHOW_TRACEBACK) or not (expected or after_signal):
        traceback.print_exception(error)
    if after_signal and not expected:
        return code
    print(printable(f"{prefix}: {sentence}"), file=sys.stderr)
    return code


def _standard_output_if_full() -> str:
    """': standard output' if text that was printed cannot be written, else ''; the text is discarded."""
    try:
        sys.stdout.flush()
    except OSError as error:
        if error.errno not in FULL_DISK:
            raise
        # The interpreter flushes standard output again when it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ": standard output"
    return ""


def exit_code(action: Callable[[], int]) -> int:
    """Runs an action and returns its exit code. An error that stops it is printed and determines the exit code."""
    on_stop_signals(Ending(TERMINATED))
    keep_signals_in_deletions()
    try:
        if sys.stdout is None:
            raise Mistake("Standard output is closed. Redirect it to a file, a pipe or /dev/null.")
        code = action()
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except Exception as error:
        number = received_signal()
        code = report(error, after_signal=number is not None)
        if number is None:
            return code
        if number != signal.SIGINT:
            return TERMINATED
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
