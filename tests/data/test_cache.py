import logging
import os
import threading
import time
from contextlib import suppress

import pytest

import nmt.files
from nmt.data.cache import cached_folder, content_key, file_digest
from nmt.errors import Mistake


def test_a_folder_is_filled_once(tmp_path):
    calls = []

    def fill(folder):
        calls.append(folder)
        (folder / "file").write_text("5")

    for _ in range(3):
        assert (cached_folder(tmp_path / "deep" / "key", fill) / "file").read_text() == "5"
    assert len(calls) == 1


def test_an_interrupted_fill_leaves_nothing_behind(tmp_path):
    def fill(folder):
        (folder / "file").write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cached_folder(tmp_path / "key", fill)
    assert list(tmp_path.iterdir()) == []


def test_without_locks_the_result_of_the_first_process_stays(tmp_path, monkeypatch):
    monkeypatch.setattr(nmt.files, "try_lock", lambda _: True)

    def slow(folder):
        (folder / "file").write_text("slow")
        cached_folder(tmp_path / "key", lambda other: (other / "file").write_text("fast") and None)

    assert (cached_folder(tmp_path / "key", slow) / "file").read_text() == "fast"
    assert [path.name for path in tmp_path.iterdir()] == ["key"]


def test_one_process_fills_a_folder_and_the_others_wait(tmp_path):
    """Threads stand for processes: a lock belongs to an open file, and each of them opens its own."""
    begun, calls = threading.Event(), []

    def fill(folder):
        begun.set()
        calls.append(folder)
        time.sleep(0.3)
        (folder / "file").write_text("5")

    threads = [threading.Thread(target=cached_folder, args=(tmp_path / "key", fill)) for _ in range(3)]
    threads[0].start()
    begun.wait()
    for thread in threads[1:]:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(calls) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["key"]


def test_a_process_that_waited_for_one_that_failed_fills_the_folder(tmp_path):
    begun = threading.Event()

    def fail(folder):
        begun.set()
        time.sleep(0.3)
        raise Mistake("There is no disk.")

    def run():
        with suppress(Mistake):
            cached_folder(tmp_path / "key", fail)

    thread = threading.Thread(target=run)
    thread.start()
    begun.wait()
    assert (
        cached_folder(tmp_path / "key", lambda folder: (folder / "file").write_text("5") and None) / "file"
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

    folder = cached_folder(tmp_path / "key", fill)
    assert not caplog.messages
    damage(folder)
    moved = [(path, path.read_text()) for path in tmp_path.glob("moved/*")]
    with caplog.at_level(logging.WARNING):
        assert (cached_folder(folder, fill) / "file").read_text() == "whole"
        cached_folder(folder, fill)
    assert caplog.messages == [f"{folder} in the cache is damaged: it is made again."]
    assert [(path, path.read_text()) for path in tmp_path.glob("moved/*")] == moved
    assert {path.name for path in tmp_path.iterdir()} <= {"key", "moved"}
    assert not os.path.islink(folder)
