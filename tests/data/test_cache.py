import errno
import hashlib
import logging
import os
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

import nmt.files
from nmt.data.cache import cached_folder, content_key, file_digest
from nmt.errors import CheckFailed, Mistake

TASK = "filling the folder"


def test_a_folder_is_filled_once(tmp_path):
    calls = []

    def fill(folder):
        calls.append(folder)
        (folder / "file").write_text("5")

    for _ in range(3):
        assert (cached_folder(tmp_path / "deep" / "key", fill, TASK) / "file").read_text() == "5"
    assert len(calls) == 1


def test_an_interrupted_fill_leaves_nothing_behind(tmp_path):
    def fill(folder):
        (folder / "file").write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cached_folder(tmp_path / "key", fill, TASK)
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_left_is_deleted(tmp_path):
    (tmp_path / ".key.0123.part").mkdir()
    (tmp_path / ".key.0123.part" / "file").write_text("half")
    (tmp_path / ".key.lock").mkdir()
    for _ in range(2):
        cached_folder(tmp_path / "key", lambda folder: (folder / "file").write_text("5") and None, TASK)
        assert [path.name for path in tmp_path.iterdir()] == ["key"]
        (tmp_path / ".key.lock").mkdir()  # killed after the folder was filled


def test_without_locks_the_result_of_the_first_process_stays(tmp_path, monkeypatch):
    monkeypatch.setattr(nmt.files, "try_lock", lambda _: None)

    def slow(folder):
        (folder / "file").write_text("slow")
        cached_folder(tmp_path / "key", lambda other: (other / "file").write_text("fast") and None, TASK)

    assert (cached_folder(tmp_path / "key", slow, TASK) / "file").read_text() == "fast"
    assert [path.name for path in tmp_path.iterdir()] == ["key"]


def test_one_process_fills_a_folder_and_the_others_wait(tmp_path):
    """Threads stand for processes: a lock belongs to an open file, and each of them opens its own."""
    begun, calls = threading.Event(), []

    def fill(folder):
        begun.set()
        calls.append(folder)
        time.sleep(0.3)
        (folder / "file").write_text("5")

    threads = [threading.Thread(target=cached_folder, args=(tmp_path / "key", fill, TASK)) for _ in range(3)]
    threads[0].start()
    begun.wait()
    for thread in threads[1:]:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(calls) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["key"]


def test_one_process_fills_a_folder_while_the_lock_of_a_failed_one_is_deleted(tmp_path, monkeypatch, caplog):
    """The first one fails; the second waited for its lock; the third comes when that lock has been deleted."""
    caplog.set_level(logging.INFO)
    calls, waiting, third_locked = [], threading.Event(), threading.Event()

    def fail(folder):
        waiting.wait()
        raise Mistake("There is no disk.")

    def fill(folder):
        calls.append(folder)
        third_locked.set()
        time.sleep(0.3)
        (folder / "file").write_text("5")

    def sleep(_):
        # The second process sleeps until the third one fills the folder under a new lock.
        waiting.set()
        third_locked.wait()

    def first():
        with suppress(Mistake):
            cached_folder(tmp_path / "key", fail, TASK)

    one = threading.Thread(target=first)
    one.start()
    while not list(tmp_path.glob(".key.*.part")):
        time.sleep(0.01)
    monkeypatch.setattr("nmt.files.time", type("Time", (), {"sleep": sleep}))
    two = threading.Thread(target=cached_folder, args=(tmp_path / "key", fill, TASK))
    two.start()
    one.join()
    monkeypatch.setattr("nmt.files.time", time)
    cached_folder(tmp_path / "key", fill, TASK)
    two.join()
    assert len(calls) == 1
    assert caplog.messages == ["Waiting until another process has finished filling the folder"]
    assert [path.name for path in tmp_path.iterdir()] == ["key"]


def test_a_process_that_waited_for_one_that_failed_fills_the_folder(tmp_path):
    begun = threading.Event()

    def fail(folder):
        begun.set()
        time.sleep(0.3)
        raise Mistake("There is no disk.")

    def run():
        with suppress(Mistake):
            cached_folder(tmp_path / "key", fail, TASK)

    thread = threading.Thread(target=run)
    thread.start()
    begun.wait()
    assert (
        cached_folder(tmp_path / "key", lambda folder: (folder / "file").write_text("5") and None, TASK) / "file"
    ).exists()
    thread.join()
    assert [path.name for path in tmp_path.iterdir()] == ["key"]


def test_keys_depend_on_content(tmp_path):
    (tmp_path / "a").write_bytes(b"same")
    (tmp_path / "b").write_bytes(b"same")
    assert file_digest(tmp_path / "a") == file_digest(tmp_path / "b")
    assert content_key([1, "23"]) != content_key([12, "3"])
    assert content_key(["a", "b"]) != content_key(["b", "a"])


@pytest.mark.parametrize(
    "damage",
    [
        lambda folder: (folder / "file").write_text("half"),
        lambda folder: (folder / "file").write_text(""),
        lambda folder: (folder / "file").unlink(),
        lambda folder: (folder / "sha256.json").write_text(""),
        lambda folder: (folder / "sha256.json").write_text('{"file": [5]}'),
        lambda folder: (folder / "sha256.json").write_text("[" * 100_000),
        lambda folder: (folder / "sha256.json").unlink(),
        lambda folder: folder.rename(folder.with_name("moved")) and folder.write_text("a file"),
        lambda folder: folder.rename(folder.with_name("moved")) and folder.symlink_to("absent"),
        lambda folder: (
            (folder / "file").write_text("half")
            and folder.rename(folder.with_name("moved")).samefile(folder.with_name("moved"))
            and folder.symlink_to("moved")
        ),
    ],
)
def test_what_is_damaged_is_made_again(tmp_path, caplog, damage):
    def fill(folder):
        (folder / "file").write_text("whole")

    folder = cached_folder(tmp_path / "key", fill, TASK)
    assert not caplog.messages
    damage(folder)
    moved = [(path, path.read_text()) for path in tmp_path.glob("moved/*")]
    with caplog.at_level(logging.WARNING):
        assert (cached_folder(folder, fill, TASK) / "file").read_text() == "whole"
        cached_folder(folder, fill, TASK)
    assert caplog.messages == [f"{folder} in the cache is damaged: it is made again."]
    assert [(path, path.read_text()) for path in tmp_path.glob("moved/*")] == moved
    assert {path.name for path in tmp_path.iterdir()} <= {"key", "moved"}
    assert not os.path.islink(folder)


def test_what_a_killed_process_left_behind_is_removed(tmp_path: Path) -> None:
    left, other = tmp_path / f".key.{'0' * 16}.part", tmp_path / f".other.{'0' * 16}.part"
    for folder in (left, other):
        folder.mkdir()
    cached_folder(tmp_path / "key", lambda folder: None, "filling")
    assert sorted(tmp_path.iterdir()) == [other, tmp_path / "key"]


def test_a_disk_that_fails_is_reported_in_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    (tmp_path / "a.en").touch()
    monkeypatch.setattr(hashlib, "file_digest", fails)
    with pytest.raises(
        CheckFailed, match=r"a\.en cannot be read \(Input/output error\); check the disk, or use a copy"
    ):
        file_digest(tmp_path / "a.en")
