"""scripts/bench/long_stream.py, with small programs in place of nmt.translate."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from scripts.bench import long_stream

ECHO = "import sys\nfor number, line in enumerate(sys.stdin): print(line, end='', flush=True)"
LOST = "import sys\nfor number, line in enumerate(sys.stdin): number == 1 or print(line, end='', flush=True)"
MESSAGE = "print('interrupted', file=sys.stderr); sys.exit(130)"
STOPPED = f"import sys\ntry:\n for line in sys.stdin: print(line, flush=True)\nexcept KeyboardInterrupt: {MESSAGE}"


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Sets the program that runs in place of nmt.translate; the right translation of a line is the line."""

    def set_program(text: str) -> None:
        def start(run_dir: str, errors: Any) -> subprocess.Popen[bytes]:
            command = [sys.executable, "-c", text]
            return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors)

        monkeypatch.setattr(long_stream, "start", start)

    monkeypatch.setattr(long_stream.nmt, "load", lambda _: SimpleNamespace(translate=lambda lines, **_: [*lines]))
    monkeypatch.setattr(long_stream, "EVERY", 10)
    return set_program


def test_a_stream_without_faults_passes(program: Callable[[str], None]) -> None:
    program(ECHO)
    assert long_stream.stream("run", 40, seed=1)


def test_lost_lines_are_reported(program: Callable[[str], None], capsys: pytest.CaptureFixture[str]) -> None:
    program(LOST)
    assert not long_stream.stream("run", 40, seed=1)
    assert "lines in 40, lines out 39, exit code 0" in capsys.readouterr().out


def test_ctrl_c_ends_the_command_with_one_word(program: Callable[[str], None]) -> None:
    program(STOPPED)
    assert long_stream.stopped("run", "Ctrl-C", 130, "interrupted\n")
    program(f"print('a message', file=__import__('sys').stderr); {STOPPED}")
    assert not long_stream.stopped("run", "Ctrl-C", 130, "interrupted\n")


@pytest.mark.soak
def test_the_command_itself_ends_as_expected(here: Path) -> None:
    assert long_stream.stopped("maps_luong", "closed pipe", 141, "")
    assert long_stream.stopped("maps_luong", "Ctrl-C", 130, "interrupted\n")
