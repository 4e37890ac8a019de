"""The commands as processes: pipes, exit codes, and what goes to which stream."""

import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., Any]
Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def trained(command: Command, tiny: Callable[..., list[str]], corpus: Path) -> Path:
    ended = command("train", *tiny(trainer__max_steps=2, validation__every=2, data__test="null"))
    assert (ended.code, ended.output) == (0, "run\n"), ended.errors
    return corpus / "run"


def test_translate_is_a_filter(trained: Path, command: Command) -> None:
    ended = command("translate", "run_dir=run", "search.beam_size=1", text="one two.\r\n\nseven")
    assert ended.code == 0
    assert ended.errors == ""
    assert ended.output.count("\n") == 3
    assert ended.output.split("\n")[1] == ""
    assert command("translate", "run_dir=run", text="").output == ""


def test_a_closed_pipe_ends_translate_with_141(trained: Path, start: Start) -> None:
    process = start("translate", "run_dir=run", "search.beam_size=1", stdin=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdout.close()
    process.stdin.write("one two.\n" * 3)
    process.stdin.close()
    assert process.wait() == 141
    assert process.stderr is not None
    assert process.stderr.read() == ""


def test_help_into_a_closed_pipe_ends_with_141(start: Start) -> None:
    process = start("train", "--help")
    assert process.stdout is not None
    process.stdout.close()
    assert process.wait() == 141
    assert process.stderr is not None
    assert process.stderr.read() == ""


def test_a_terminated_training_ends_with_143_and_can_be_resumed(start: Start, tiny: Callable[..., list[str]]) -> None:
    process = start("train", *tiny(trainer__max_steps=10**6, validation__every=10**5, trainer__log_every_n_steps=1))
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("step 3/"):
            process.send_signal(signal.SIGTERM)
            break
    output, errors = process.communicate()
    assert (process.returncode, output) == (143, "")
    assert "and saved; resume=true goes on from there" in errors
