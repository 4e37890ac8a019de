"""A run directory is written by one process at a time."""

import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from nmt.errors import Mistake
from nmt.files import locked

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="nothing is locked on Windows")


def test_one_holds_a_folder_and_leaves_nothing_in_it(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    held = pytest.raises(Mistake, match=r"Another process is writing to .*run: wait until it has ended")
    with locked(folder), held, locked(folder):
        pass
    with locked(folder):
        pass
    assert not list(folder.iterdir())


def test_waiting_for_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    other = locked(tmp_path)
    other.__enter__()
    monkeypatch.setattr(time, "sleep", lambda _: other.__exit__(None, None, None))
    with locked(tmp_path, wait=True):
        assert [record.getMessage() for record in caplog.records] == [
            f"Waiting until another process has finished writing to {tmp_path}"
        ]
        with pytest.raises(Mistake, match="Another process"), locked(tmp_path):
            pass


def test_a_folder_that_is_deleted_before_it_is_locked_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process deletes it after it was created, and after it was opened."""
    folder, opened = tmp_path / "lock", os.open
    deletions = iter((True, False, True, False, False))  # the first call of os.open fails

    def slow_open(path: Path, *flags: int) -> int:
        if next(deletions):
            folder.rmdir()
        handle = opened(path, *flags)
        if next(deletions):
            folder.rmdir()
        return handle

    monkeypatch.setattr("nmt.files.os.open", slow_open)
    with locked(folder):
        monkeypatch.undo()
        assert folder.is_dir()
        with pytest.raises(Mistake, match="Another process"), locked(folder):
            pass
    assert not list(deletions)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_process_does_not_hold_it(tmp_path: Path) -> None:
    script = f"""
import os, time
from pathlib import Path
from nmt.files import locked
with locked(Path({str(tmp_path)!r})):
    os.fork()
    os.write(1, b"held\\n")
    time.sleep(60)
"""
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout is not None
    try:
        assert [process.stdout.readline() for _ in range(2)] == ["held\n"] * 2  # of both
        process.kill()
        process.wait()
        with locked(tmp_path):
            pass
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()


def test_a_folder_without_locks_is_used_with_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("nmt.files.fcntl.flock", fail)
    with locked(tmp_path / "run") as alone:
        assert (tmp_path / "run").is_dir()
        assert not alone
    assert "This file system does not support locks" in caplog.text


def test_a_system_without_locks_has_the_folder_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nmt.files.fcntl", None)  # as on Windows
    with locked(tmp_path / "a" / "run") as alone:
        assert (tmp_path / "a" / "run").is_dir()
        assert not alone


def test_a_second_training_is_refused_until_the_first_is_dead(
    corpus: Path, start: Callable[..., subprocess.Popen[str]], tiny: Callable[..., list[str]]
) -> None:
    first = start("train", *tiny(trainer__max_steps=100000, trainer__log_every_n_steps=1, validation__every=10))
    assert first.stderr is not None
    next(line for line in first.stderr if line.startswith("step 11/"))
    for more in ("resume=true", "overwrite=true"):
        refused = start("train", *tiny(trainer__max_steps=100000, validation__every=10), more)
        assert "error: Another process is writing to run" in refused.communicate()[1]
        assert refused.returncode == 2
    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    again = start("train", *tiny(trainer__max_steps=20, validation__every=10), "resume=true")
    assert again.communicate()[0].startswith("run\n")
    assert again.returncode == 0
