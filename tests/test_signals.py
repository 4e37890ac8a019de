"""What signals do to a command, and what happens to its output when its terminal is gone."""

import contextlib
import os
import pty
import signal
import subprocess
import sys
from functools import partial

import pytest

from nmt.errors import exit_code
from nmt.signals import STOP_SIGNALS, EndingBlockedCalls


@pytest.mark.parametrize("started", [False, True])
def test_ctrl_c_is_one_line_while_a_command_starts(started: bool) -> None:
    """An import that meets a KeyboardInterrupt may raise something else, as numpy's does."""
    script = (
        "import os, signal; from nmt.signals import *; leave_on_interrupt()\n"
        f"if {started}: raise_on_interrupt()\n"
        "try: os.kill(os.getpid(), signal.SIGINT)\n"
        "except KeyboardInterrupt: print('raised')\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (
        (0, "raised\n", "") if started else (130, "", "interrupted\n")
    )


@pytest.mark.parametrize(
    ("name", "code", "words"), [("SIGTERM", 143, ""), ("SIGINT", 130, "interrupted\n"), ("0", 1, "error: ValueError\n")]
)
def test_an_error_that_a_library_makes_of_a_signal_is_not_reported(name: str, code: int, words: str) -> None:
    """safetensors turns a KeyboardInterrupt while it loads weights into a ValueError."""
    script = (
        "import os, signal, sys; from nmt.errors import exit_code; from nmt.signals import *\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler); leave_on_interrupt()\n"
        "def work():\n"
        "    raise_on_interrupt()\n"
        f"    try: os.kill(os.getpid(), getattr(signal, '{name}', 0))\n"
        "    finally: raise ValueError from None\n"
        "sys.exit(exit_code(work))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert done.stderr.endswith(words)
    assert ("Traceback" in done.stderr) == (code == 1)


def test_signals_end_a_command_unless_they_are_ignored() -> None:
    """As by nohup, which ignores SIGHUP."""
    before = {number: signal.getsignal(number) for number in STOP_SIGNALS}
    try:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP):
            ends = number != signal.SIGHUP
            with pytest.raises(SystemExit, match="143") if ends else contextlib.nullcontext():
                assert exit_code(partial(os.kill, os.getpid(), number) if ends else lambda: 0) == 0
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


ENDS_IN = {
    "a deletion": "class Deleted:\n    def __del__(self): os.kill(os.getpid(), number)\n",
    "a weak reference's callback": (
        "class Deleted:\n"
        "    def __init__(self): references.append(weakref.ref(self, lambda _: os.kill(os.getpid(), number)))\n"
    ),
    "a deletion within a deletion": (
        "class Inner:\n    def __del__(self): os.kill(os.getpid(), number)\n"
        "class Deleted:\n    def __init__(self): self.inner = Inner()\n"
        "    def __del__(self):\n        inner = Inner()\n        del inner\n        time.sleep(0)\n"
    ),
}


@pytest.mark.parametrize(("name", "code", "words"), [("SIGTERM", 143, ""), ("SIGINT", 130, "interrupted\n")])
@pytest.mark.parametrize("place", ENDS_IN)
def test_a_signal_ends_a_command_wherever_it_arrives(place: str, name: str, code: int, words: str) -> None:
    """Python prints and drops what is raised while it deletes an object."""
    script = (
        f"import os, signal, sys, time, weakref; from nmt.errors import exit_code\nnumber = signal.{name}\n"
        f"references = []\n{ENDS_IN[place]}"
        "def work():\n"
        "    try:\n        Deleted()\n        print('went on')\n        return 0\n"
        "    finally: print('cleaned up')\n"
        "sys.exit(exit_code(work))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (code, "cleaned up\n", words)


def test_other_errors_while_an_object_is_deleted_are_still_shown() -> None:
    script = (
        "from nmt.errors import exit_code\nclass Deleted:\n    def __del__(self): 1 / 0\n"
        "print(exit_code(lambda: Deleted() and 0))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.stdout == "0\n"
    assert done.stderr.startswith("Exception ignored in: <function Deleted.__del__")
    assert done.stderr.endswith("ZeroDivisionError: division by zero\n")


def test_output_to_a_terminal_that_is_gone_is_discarded() -> None:
    script = (
        "import sys; from nmt.signals import *; sys.stdin.readline(); discard_output_to_lost_terminal()\n"
        "print('a step', file=sys.stderr)"
    )
    ours, theirs = pty.openpty()
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stderr=theirs, text=True) as process:
        os.close(theirs)
        os.close(ours)
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.close()
        assert process.wait() == 0


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGUSR1, 143), (signal.SIGINT, 130)])
def test_a_signal_ends_a_process_that_a_library_blocks(number: int, code: int) -> None:
    """A thread that takes a lock twice waits forever, and no signal interrupts it."""
    script = (
        "import signal, sys, ctypes; from nmt.signals import *\n"
        "on_stop_signals(lambda *_: None); signal.signal(signal.SIGINT, lambda *_: None)\n"
        "watch = EndingBlockedCalls(143, patience=0.1); print('ready', flush=True)\n"
        "lock, libc = ctypes.create_string_buffer(64), ctypes.CDLL(None)\n"
        "libc.pthread_mutex_lock(lock); libc.pthread_mutex_lock(lock)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)
    name = signal.Signals(number).name
    assert (process.returncode, errors.decode()) == (code, f"{name}: ended while waiting for other processes\n")


def test_a_signal_is_left_to_a_main_thread_that_reacts() -> None:
    script = (
        "import os, signal, time; from nmt.signals import *\n"
        "def stop(*_): watch.close(); watch.close(); raise SystemExit(7)\n"
        "on_stop_signals(stop); watch = EndingBlockedCalls(143, patience=5.0)\n"
        "os.kill(os.getpid(), signal.SIGTERM); time.sleep(30)"
    )
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, check=False).returncode == 7


def test_signals_are_not_watched_any_more_afterwards() -> None:
    watch = EndingBlockedCalls(143)
    watch.close()
    assert signal.set_wakeup_fd(-1) == -1
