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
from nmt.signals import STOP_SIGNALS


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
