"""Files and folders that are written whole or not at all."""

import errno
import os
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import nmt.files
from nmt.files import (
    atomic_folder,
    atomic_write,
    is_part,
    remove_abandoned_parts,
    remove_parts,
    subfolder,
    write_json,
    write_text,
)


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    file = tmp_path / "new" / "file.json"
    for content in ({"a": "tiếng"}, [1]):
        write_json(file, content)
    assert file.read_text(encoding="utf-8") == "[\n  1\n]\n"
    assert [path.name for path in file.parent.iterdir()] == ["file.json"]


def test_a_failed_write_leaves_the_former_file(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("former")
    with pytest.raises(IsADirectoryError), atomic_write(file) as part:
        part.write_text("half") and tmp_path.write_text("")
    assert file.read_text() == "former"
    assert list(tmp_path.iterdir()) == [file]


def test_the_former_file_can_be_kept(tmp_path: Path) -> None:
    file, former = tmp_path / "last", tmp_path / "previous"
    for content in ("one", "two", "three"):
        with atomic_write(file, former) as part:
            assert is_part(part, "last")
            part.write_text(content)
    assert (file.read_text(), former.read_text()) == ("three", "two")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["last", "previous"]


@pytest.mark.skipif(os.name == "nt", reason="symbolic links need a privilege on Windows")
def test_a_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    precious, absent = tmp_path / "precious", tmp_path / "absent"
    precious.mkdir()
    (precious / "file").write_text("precious")
    for name, target in (("file", precious / "file"), ("folder", precious), ("broken", absent)):
        (tmp_path / name).symlink_to(target)
    write_text(tmp_path / "file", "mine\r\n")
    for name in ("folder", "broken"):
        with atomic_folder(tmp_path / name, replace=name == "folder") as part:
            (part / "deeper").mkdir()
            (part / "deeper" / "file").write_text("mine")
        assert (tmp_path / name / "deeper" / "file").read_text() == "mine"
    assert (tmp_path / "file").read_bytes() == b"mine\r\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["broken", "file", "folder", "precious"]
    assert [path.read_text() for path in precious.iterdir()] == ["precious"]


def test_nobody_can_predict_the_name_of_a_temporary_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = set()
    for _ in range(5):
        with atomic_write(tmp_path / "file") as part:
            names.add(part.name)
    assert len(names) == 5
    monkeypatch.setattr("nmt.files.secrets.token_hex", lambda _: "known")
    (tmp_path / ".file.known.part").symlink_to(tmp_path / "file")
    with pytest.raises(FileExistsError), atomic_write(tmp_path / "file"):
        pass


def test_what_a_killed_writer_left_behind_is_removed(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file").touch()
    (tmp_path / ".a.1.part").mkdir()
    (tmp_path / ".a.1.part" / "file").touch()
    (tmp_path / ".b.2.part").touch()
    (tmp_path / ".c.3.part").symlink_to(tmp_path / "folder")
    (tmp_path / "mine.part").touch()
    remove_parts(tmp_path)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "folder", "mine.part"]


def test_a_folder_appears_whole(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "folder"
    with pytest.raises(IsADirectoryError), atomic_folder(folder) as part:
        (part / "file").write_text("half") and part.write_text("")
    assert list(folder.parent.iterdir()) == []
    with atomic_folder(folder) as part:
        (part / "file").write_text("whole")
        assert not folder.exists()
    assert [path.name for path in folder.parent.iterdir()] == ["folder"]
    assert (folder / "file").read_text() == "whole"


def test_the_folder_of_a_faster_process_stays(tmp_path: Path) -> None:
    with atomic_folder(tmp_path / "folder") as part:
        (part / "file").write_text("slow")
        with atomic_folder(tmp_path / "folder") as other:
            (other / "file").write_text("fast")
    assert (tmp_path / "folder" / "file").read_text() == "fast"
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_a_folder_is_replaced_whole_or_stays_as_it_was(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "former").touch()
    with pytest.raises(IsADirectoryError), atomic_folder(folder, replace=True) as part:
        (part / "half").touch() or part.write_text("")
    assert [path.name for path in folder.iterdir()] == ["former"]
    with atomic_folder(folder, replace=True) as part:
        (part / "new").touch()
        assert [path.name for path in folder.iterdir()] == ["former"]
    assert [path.name for path in folder.iterdir()] == ["new"]
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_a_folder_that_cannot_be_replaced_comes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    rename = Path.rename

    def failing(path: Path, target: Path) -> Path:
        if (path / "new").exists():
            raise PermissionError
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", failing)
    (folder / "former").touch()
    with pytest.raises(PermissionError), atomic_folder(folder, replace=True) as part:
        (part / "new").touch()
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]
    assert [path.name for path in folder.iterdir()] == ["former"]


class Killed(BaseException):
    """Ends a writer as SIGKILL does: nothing is cleaned up."""


@pytest.mark.parametrize("name", ["folder", "x" * 60])
def test_a_writer_killed_while_it_replaces_a_folder_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    folder = tmp_path / name
    folder.mkdir()
    (folder / "former").touch()
    rename = Path.rename

    def killed(path: Path, target: Path) -> Path:
        if target == folder:
            raise Killed
        return rename(path, target)

    with monkeypatch.context() as dying:
        dying.setattr(Path, "rename", killed)
        dying.setattr(nmt.files, "_clear", lambda part: None)
        dying.setattr(nmt.files.shutil, "rmtree", lambda *_, **__: None)
        with pytest.raises(Killed), atomic_folder(folder, replace=True) as part:
            (part / "new").touch()
    assert not folder.exists()
    with pytest.raises(IsADirectoryError), atomic_folder(folder, replace=True) as part:
        part.write_text("")
    assert [path.name for path in folder.iterdir()] == ["former"]
    assert [*tmp_path.iterdir()] == [folder]


def test_nobody_takes_the_folder_that_is_being_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "former").touch()
    rename = Path.rename

    def meanwhile(path: Path, target: Path) -> Path:
        if target == folder:
            remove_abandoned_parts(tmp_path, "folder")
            raise PermissionError
        return rename(path, target)

    with monkeypatch.context() as failing:
        failing.setattr(Path, "rename", meanwhile)
        with pytest.raises(PermissionError), atomic_folder(folder, replace=True) as part:
            (part / "new").touch()
    assert len([*tmp_path.rglob("former")]) == 1
    remove_abandoned_parts(tmp_path, "folder")
    assert [path.name for path in folder.iterdir()] == ["former"]


def test_what_a_killed_writer_left_is_deleted_by_the_next_one(tmp_path: Path) -> None:
    """Only what nobody is writing any more, and only of the same name."""
    for name in (".folder.0123.part", ".other.0123.part"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").touch()
    (tmp_path / ".folder.4567.part").symlink_to(tmp_path / ".other.0123.part")
    with atomic_folder(tmp_path / "folder") as slow:
        (slow / "file").write_text("slow")
        with atomic_folder(tmp_path / "folder") as fast:
            (fast / "file").write_text("fast")
        with atomic_write(tmp_path / "page") as page:
            remove_abandoned_parts(tmp_path, "page")
            assert page.exists()
    (tmp_path / ".page.0123.part").touch()
    (tmp_path / "folder" / ".picture.0123.part").touch()
    subfolder(tmp_path, "folder")
    remove_abandoned_parts(tmp_path, "page")
    assert [path.read_text() for path in (tmp_path / "folder").iterdir()] == ["fast"]
    left = sorted(path.name for path in tmp_path.iterdir())
    assert left == [".folder.4567.part", ".other.0123.part", "folder", "page"]


def test_a_record_is_written_without_what_its_killed_writers_left(tmp_path: Path) -> None:
    for name in (".scores.json.0123.part", ".others.json.0123.part"):
        (tmp_path / name).touch()
    write_json(tmp_path / "scores.json", {})
    assert sorted(path.name for path in tmp_path.iterdir()) == [".others.json.0123.part", "scores.json"]


def test_without_locks_nothing_is_taken_for_abandoned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def flock(file: int, flags: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", flock)
    (tmp_path / ".folder.0123.part").mkdir()
    with atomic_folder(tmp_path / "folder") as part:
        (part / "file").touch()
    assert sorted(path.name for path in tmp_path.iterdir()) == [".folder.0123.part", "folder"]


def test_a_part_that_another_process_has_deleted_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other one came between making it and locking it."""
    calls: list[int] = []
    lock = nmt.files._lock_quietly

    def delete_first(file: int) -> bool | None:
        calls.append(file)
        if len(calls) == 1:
            [part] = tmp_path.iterdir()
            part.rmdir()
        return lock(file)

    monkeypatch.setattr(nmt.files, "_lock_quietly", delete_first)
    with atomic_folder(tmp_path / "folder") as part:
        (part / "file").touch()
    assert len(calls) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EROFS])
@pytest.mark.parametrize("kind", ["file", "folder"])
def test_whatever_the_disk_refuses_the_former_content_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, code: int
) -> None:
    """Each call of the system that writes fails in turn; afterwards the disk works again."""
    path = tmp_path / kind

    def write(text: str) -> None:
        if kind == "file":
            with atomic_write(path) as part:
                part.write_text(text)
        else:
            with atomic_folder(path, replace=True) as part:
                (part / "text").write_text(text)

    def written() -> list[str]:
        return [each.read_text() for each in tmp_path.rglob("*") if each.is_file()]

    write("former")
    names = ("open", "fsync", "replace") if kind == "file" else ("mkdir", "fsync", "rename")
    for name in names:
        for number in count(1):
            calls, own = count(), getattr(os, name)

            def failing(*given: Any, calls: Any = calls, number: int = number, own: Any = own, **options: Any) -> Any:
                if next(calls) == number - 1:
                    raise OSError(code, os.strerror(code), str(path))
                return own(*given, **options)

            with monkeypatch.context() as failures, suppress(OSError):
                failures.setattr(os, name, failing)
                write("new")
            assert list(tmp_path.iterdir()) == [path], (name, number)
            assert written() in (["former"], ["new"])
            if next(calls) < number:  # so often it is not called
                break
        assert number > 1
        write("former")


@pytest.mark.parametrize("name", ["x" * 255, "ế" * 85])
def test_a_name_may_be_as_long_as_the_file_system_allows(tmp_path: Path, name: str) -> None:
    """The name of the temporary file beside it is not longer."""
    write_text(tmp_path / name, "text")
    with atomic_folder(tmp_path / "new" / name) as folder:
        (folder / "file").touch()
    assert (tmp_path / name).read_text(encoding="utf-8") == "text"
