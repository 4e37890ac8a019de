import gzip
import io
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from nmt.data.archives import extract, stem

FILES = {"one.en": b"a\n" * 101, "deep/two.vi": b"b\n" * 103}


def zipped(path: Path, files: dict[str, bytes]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)


def tarred(path: Path, files: dict[str, bytes], kind: bytes = tarfile.REGTYPE) -> None:
    with tarfile.open(path, f"w:{path.suffix.removeprefix('.').replace('tgz', 'gz').replace('tar', '')}") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.type, entry.linkname = len(content), kind, "/etc/hostname"
            archive.addfile(entry, io.BytesIO(content))


WRITERS: dict[str, Callable[[Path, dict[str, bytes]], None]] = {
    "a.zip": zipped,
    **dict.fromkeys(["a.tar", "a.tgz", "a.tar.gz", "a.tar.bz2", "a.tar.xz"], tarred),
}


@pytest.mark.parametrize("name", WRITERS)
def test_what_was_put_in_comes_out(tmp_path: Path, name: str) -> None:
    WRITERS[name](tmp_path / name, FILES)
    found = extract(tmp_path / name, tmp_path / "out", 1000)
    assert {str(path.relative_to(tmp_path / "out")): path.read_bytes() for path in found} == FILES
    assert {path for path in (tmp_path / "out").rglob("*") if path.is_file()} == set(found)


def test_a_gz_file_is_one_file(tmp_path: Path) -> None:
    (tmp_path / "a.en.gz").write_bytes(gzip.compress(b"hello"))
    [found] = extract(tmp_path / "a.en.gz", tmp_path / "out", 1000)
    assert found == tmp_path / "out" / "a.en"
    assert found.read_bytes() == b"hello"


@pytest.mark.parametrize("name", ["../evil", "/tmp/evil", "deep/../../evil", "..\\evil", "c:evil"])
@pytest.mark.parametrize("archive", ["a.zip", "a.tar"])
def test_nothing_is_written_elsewhere(tmp_path: Path, archive: str, name: str) -> None:
    folder = tmp_path / "inner"
    folder.mkdir()
    WRITERS[archive](folder / archive, {"good": b"1", name: b"2"})
    with pytest.raises(ValueError, match="would be written elsewhere; nothing of it is kept"):
        extract(folder / archive, folder / "out", 1000)
    assert [path.name for path in tmp_path.rglob("*")] == ["inner", archive]


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE])
def test_only_files_and_folders_are_taken(tmp_path: Path, kind: bytes) -> None:
    tarred(tmp_path / "a.tar", {"link": b""}, kind)
    with pytest.raises(ValueError, match="'link', which is no file"):
        extract(tmp_path / "a.tar", tmp_path / "out", 1000)


@pytest.mark.parametrize("name", ["a.zip", "a.tgz", "a.gz"])
def test_an_archive_cannot_blow_up(tmp_path: Path, name: str) -> None:
    zeros = {"zeros": bytes(10**6)}
    if name == "a.gz":
        (tmp_path / name).write_bytes(gzip.compress(zeros["zeros"]))
    else:
        WRITERS[name](tmp_path / name, zeros)
    with pytest.raises(ValueError, match="holds more than 999,999 bytes"):
        extract(tmp_path / name, tmp_path / "out", 999_999)
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        *((name, content) for name in WRITERS for content in (b"", b"no archive at all", "half")),
        *(("a.gz", content) for content in (b"no archive at all", "half")),
    ],
)
def test_a_damaged_archive_is_refused(tmp_path: Path, name: str, content: bytes | str) -> None:
    if content == "half":
        if name == "a.gz":
            (tmp_path / name).write_bytes(gzip.compress(b"hello" * 99))
        else:
            WRITERS[name](tmp_path / name, {"noise": bytes(i * i % 251 for i in range(9999))})
        whole = (tmp_path / name).read_bytes()
        content = whole[: len(whole) // 2]
    (tmp_path / name).write_bytes(content)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="is damaged or no archive"):
        extract(tmp_path / name, tmp_path / "out", 10**6)
    assert not (tmp_path / "out").exists()


def test_a_header_cannot_take_all_memory(tmp_path: Path) -> None:
    entry = tarfile.TarInfo("a" * 2 * 2**20)
    with gzip.open(tmp_path / "a.tgz", "wb") as file:
        file.write(entry.tobuf(tarfile.GNU_FORMAT) + bytes(1024))
    with pytest.raises(ValueError, match=r"is damaged or no archive \(a header of 2,0"):
        extract(tmp_path / "a.tgz", tmp_path / "out", 10**9)


@pytest.mark.parametrize("compression", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_zip_that_comes_out_in_one_piece_is_refused(tmp_path: Path, compression: int) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w", compression) as archive:
        archive.writestr("a", b"a")
    with pytest.raises(ValueError, match="encrypted or not compressed as usual"):
        extract(tmp_path / "a.zip", tmp_path / "out", 1000)


@pytest.mark.parametrize("names", [["a", "a"], ["a", "a/b"], ["a/b", "a"], ["a" * 300], ["a\x07"], ["\udcff"]])
def test_names_that_cannot_be_are_refused(tmp_path: Path, names: list[str]) -> None:
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        for name in names:
            archive.addfile(tarfile.TarInfo(name))
    with pytest.raises(ValueError, match=r"is damaged or no archive|would be written elsewhere"):
        extract(tmp_path / "a.tar", tmp_path / "out", 1000)
    assert [path.name for path in tmp_path.iterdir()] == ["a.tar"]


def test_there_are_no_more_files_than_a_corpus_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nmt.data.archives._MOST_FILES", 4)
    zipped(tmp_path / "a.zip", {str(number): b"" for number in range(5)})
    with pytest.raises(ValueError, match="more than 4 files"):
        extract(tmp_path / "a.zip", tmp_path / "out", 1000)


@pytest.mark.parametrize("name", ["a.tar.bz2", "a.tar.xz", "a.tgz", "a.zip"])
def test_a_wrong_byte_is_found(tmp_path: Path, name: str) -> None:
    WRITERS[name](tmp_path / name, {"noise": bytes(i * i % 251 for i in range(9999))})
    content = bytearray((tmp_path / name).read_bytes())
    content[len(content) // 2] ^= 255
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match="is damaged or no archive"):
        extract(tmp_path / name, tmp_path / "out", 10**6)


def test_what_is_there_is_left_alone(tmp_path: Path) -> None:
    zipped(tmp_path / "a.zip", FILES)
    (tmp_path / "out").mkdir()
    with pytest.raises(FileExistsError, match="exists; delete it, or choose another out"):
        extract(tmp_path / "a.zip", tmp_path / "out", 1000)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("a.tar.gz", "a"), ("a.b.ZIP", "a.b"), ("a.en.gz", "a.en"), ("a.txt", None), (".zip", None), ("tar", None)],
)
def test_the_name_without_what_makes_it_an_archive(name: str, expected: str | None) -> None:
    assert stem(name) == expected
