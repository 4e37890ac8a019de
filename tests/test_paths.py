"""Paths of settings: what is no file or folder, cannot be written to, or leads out of a folder is refused."""

import os
from functools import partial
from pathlib import Path

import pytest

from nmt.config.direction import Direction
from nmt.data.corpus import matching_prefixes
from nmt.errors import Mistake
from nmt.paths import (
    cache_folder,
    check_folder,
    check_links,
    check_utf8,
    check_writable,
    existing_file,
    folder_to_write,
)


@pytest.mark.skipif(os.name == "nt", reason="symbolic links need a privilege on Windows")
def test_links_inside_a_folder_and_links_to_files_are_allowed(tmp_path: Path) -> None:
    outside, folder = tmp_path / "outside", tmp_path / "folder"
    for path in (outside, folder / "a" / "b"):
        path.mkdir(parents=True)
    (outside / "file").touch()
    (folder / "inside").symlink_to("a")
    (folder / "a" / "file").symlink_to(outside / "file")
    check_links(folder, ["a"])
    (folder / "a" / "loop").symlink_to("loop")
    with pytest.raises(Mistake, match=r"^.*/loop is a symbolic link that leads back to itself: delete it\.$"):
        check_links(folder, ["a"])
    (folder / "a" / "loop").unlink()
    (folder / "b").symlink_to("nowhere")
    with pytest.raises(Mistake, match=r"^.*/b is a broken symbolic link: delete it\.$"):
        check_links(folder, ["b"])
    for target in (outside, tmp_path / "absent"):
        link = folder / "a" / "b" / target.name
        link.symlink_to(target)
        with pytest.raises(Mistake, match=rf"^{link} is a symbolic link to {target}, outside {folder}, where no com"):
            check_links(folder, ["a"])
        link.unlink()


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(Mistake, match=r"input is .*, which is a folder; name a file"):
        existing_file("input", tmp_path)


def test_a_pipe_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(Mistake, match=r"input is .*pipe, which is a device or a pipe; save its contents to a file"):
        existing_file("input", tmp_path / "pipe")


def test_a_missing_file_is_named_with_its_key(tmp_path: Path) -> None:
    with pytest.raises(Mistake, match=r"input is .*in\.en, which does not exist; check the path"):
        existing_file("input", tmp_path / "in.en")


@pytest.mark.parametrize(
    ("ending", "command"), [(".gz", "gunzip -k"), (".zst", "unzstd"), (".xz", "unxz -k"), (".bz2", "bunzip2 -k")]
)
def test_a_file_that_is_only_there_compressed_is_named_with_its_remedy(
    tmp_path: Path, ending: str, command: str
) -> None:
    archive = tmp_path / f"in.en{ending}"
    archive.touch()
    with pytest.raises(Mistake) as caught:
        existing_file("input", tmp_path / "in.en")
    assert str(caught.value) == (
        f"input is {tmp_path}/in.en, which does not exist, only in.en{ending}; unpack it with: {command} {archive}"
    )


def test_a_name_that_is_not_utf_8_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As old disks have; a record that names it could not be written, or not be read again."""
    monkeypatch.chdir(tmp_path)
    name = os.fsdecode(b"caf\xe9")
    Path(name).mkdir()
    for language in ("en", "vi"):
        Path(name, f"train.{language}").touch()
    for refuse in (partial(check_utf8, name), partial(matching_prefixes, ["caf*/train"], Direction("en", "vi"))):
        with pytest.raises(
            Mistake, match=r"^'caf\S+' has bytes that are not UTF-8: rename the file, as in convmv"
        ) as error:
            refuse()
        str(error.value).encode()
    check_utf8("cà phê")


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for free in (tmp_path, tmp_path / "new", tmp_path / "new" / "more"):
        check_folder("out", free)
    for taken in (tmp_path / "file", tmp_path / "file" / "more"):
        for check in (check_folder, folder_to_write):
            with pytest.raises(Mistake, match=r"^out is .*file.*, but .*file is a file; choose another folder\.$"):
                check("out", taken)


@pytest.mark.skipif(os.name == "nt", reason="symbolic links need a privilege on Windows")
@pytest.mark.parametrize(
    ("target", "kind"),
    [("absent", "broken symbolic link"), ("link", "symbolic link that leads back to itself")],
)
def test_a_broken_symbolic_link_is_no_folder(tmp_path: Path, target: str, kind: str) -> None:
    (tmp_path / "link").symlink_to(tmp_path / target)
    for path in (tmp_path / "link", tmp_path / "link" / "more"):
        with pytest.raises(Mistake, match=rf"^out is .*link.*, but .*link is a {kind}; choose another"):
            check_folder("out", path)


def test_a_folder_without_permission_to_write_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = tmp_path / "taken"
    taken.mkdir()
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != taken)  # root may write everywhere
    for free in (tmp_path, tmp_path / "new" / "more"):
        check_writable("out", free)
    for path in (taken, taken / "new" / "more"):
        with pytest.raises(
            Mistake, match=rf"^out is {path}, but {taken} cannot be written to \(Permission denied\); choose another"
        ):
            check_writable("out", path)
    with pytest.raises(Mistake, match=rf"^out is {taken}, but {taken} cannot be written to"):
        folder_to_write("out", taken)
    assert list(taken.iterdir()) == []


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="no /proc")
def test_a_file_system_that_takes_no_files_is_refused() -> None:
    with pytest.raises(Mistake, match=r"^out is /proc/x, but /proc cannot be written to \(.+\); choose another"):
        check_writable("out", "/proc/x")


def test_a_name_that_is_too_long_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Mistake, match=r"which cannot be created \(.+\); choose a shorter path"):
        folder_to_write("out", tmp_path / ("x" * 300))
    for path in ("x" * 300, f"new/{'x' * 300}/new", "a/" * 3000):
        with pytest.raises(Mistake, match=r"which cannot be created \(.+\); choose a shorter path"):
            check_writable("out", tmp_path / path)  # before the work whose results the folder is for
    check_writable("out", tmp_path / "new" / ("x" * 200))


def test_an_existing_cache_is_used_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cache_folder(tmp_path / "a" / "b").is_dir()
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert cache_folder(tmp_path) == tmp_path
    (tmp_path / "file").touch()
    with pytest.raises(Mistake, match=r"^cache_dir is .*file, but .*file is a file; choose another folder"):
        cache_folder(tmp_path / "file")
