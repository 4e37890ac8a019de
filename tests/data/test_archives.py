import gzip
import io
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from nmt.data.archives import extract, stem
from nmt.errors import Mistake

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
def test_extracting_restores_the_files(tmp_path: Path, name: str) -> None:
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
def test_nothing_is_written_outside_the_folder(tmp_path: Path, archive: str, name: str) -> None:
    folder = tmp_path / "inner"
    folder.mkdir()
    WRITERS[archive](folder / archive, {"good": b"1", name: b"2"})
    with pytest.raises(Mistake, match="which is not a safe relative path; nothing was extracted"):
        extract(folder / archive, folder / "out", 1000)
    assert [path.name for path in tmp_path.rglob("*")] == ["inner", archive]


def repacked(path: Path, change: Callable[[bytes], bytes]) -> None:
    """A zip with one member, a.en, after a change of its bytes."""
    zipped(path, {"a.en": b"text"})
    path.write_bytes(change(path.read_bytes()))


def doubled(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.en", "text")
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("a.en", "text")


def nameless(content: bytes) -> bytes:
    """The member's name has no characters, in the local header and in the directory."""
    content = bytearray(content.replace(b"a.en", b""))
    content[26] = 0
    start = content.index(b"PK\x01\x02")
    content[start + 28] = 0
    end = content.index(b"PK\x05\x06")
    content[end + 12 : end + 20] = (end - start).to_bytes(4, "little") + start.to_bytes(4, "little")
    return bytes(content)


def undecodable(content: bytes) -> bytes:
    """The member's name is said to be UTF-8, and is not."""
    content = bytearray(content.replace(b"a.en", b"\xff.en"))
    content[7] |= 8
    content[content.index(b"PK\x01\x02") + 9] |= 8
    return bytes(content)


def with_pax_header(header: bytes) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        with tarfile.open(path, "w") as archive:
            entry = tarfile.TarInfo("x")
            entry.type, entry.size = tarfile.XHDTYPE, len(header)
            archive.addfile(entry, io.BytesIO(header))
            archive.addfile(tarfile.TarInfo("a.en"))

    return write


@pytest.mark.parametrize(
    ("name", "write", "reason"),
    [
        ("a.zip", lambda path: repacked(path, nameless), "a file without a name"),
        ("a.zip", lambda path: repacked(path, undecodable), "a name that is not text"),
        ("a.zip", doubled, "File exists"),
        ("a.tar", with_pax_header(b"0 size=1\n"), "header"),
        ("a.tar", with_pax_header(b"22 GNU.sparse.map=a,b\n"), "a header without a number"),
        ("a.tar", with_pax_header(b"21 GNU.sparse.size=x\n"), "a header without a number"),
        ("a.tar", with_pax_header(b"25 GNU.sparse.realsize=x\n"), "a header without a number"),
    ],
)
def test_a_damaged_header_is_one_sentence_about_the_archive(
    tmp_path: Path, name: str, write: Callable[[Path], None], reason: str
) -> None:
    write(tmp_path / name)
    with pytest.raises(
        Mistake, match=rf"^{tmp_path / name} is damaged or not an archive \(.*{reason}.*\); delete"
    ) as error:
        extract(tmp_path / name, tmp_path / "out", 1000)
    assert ".part" not in str(error.value)
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE])
def test_links_and_devices_are_refused(tmp_path: Path, kind: bytes) -> None:
    tarred(tmp_path / "a.tar", {"link": b""}, kind)
    with pytest.raises(Mistake, match="contains 'link', which is not a file or folder; nothing was extracted"):
        extract(tmp_path / "a.tar", tmp_path / "out", 1000)


@pytest.mark.parametrize("name", ["a.zip", "a.tgz", "a.gz"])
def test_the_extracted_size_is_limited(tmp_path: Path, name: str) -> None:
    zeros = {"zeros": bytes(10**6)}
    if name == "a.gz":
        (tmp_path / name).write_bytes(gzip.compress(zeros["zeros"]))
    else:
        WRITERS[name](tmp_path / name, zeros)
    with pytest.raises(Mistake, match="contains more than 999,999 bytes, so nothing was extracted; raise max_gib"):
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
    with pytest.raises(Mistake, match=r"is damaged or not an archive .* download it again"):
        extract(tmp_path / name, tmp_path / "out", 10**6)
    assert not (tmp_path / "out").exists()


def test_a_tar_header_cannot_fill_the_memory(tmp_path: Path) -> None:
    entry = tarfile.TarInfo("a" * 2 * 2**20)
    with gzip.open(tmp_path / "a.tgz", "wb") as file:
        file.write(entry.tobuf(tarfile.GNU_FORMAT) + bytes(1024))
    with pytest.raises(Mistake, match=r"is damaged or not an archive \(a header of 2,0"):
        extract(tmp_path / "a.tgz", tmp_path / "out", 10**9)


@pytest.mark.parametrize("compression", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_zip_methods_that_decompress_in_one_piece_are_refused(tmp_path: Path, compression: int) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w", compression) as archive:
        archive.writestr("a", b"a")
    with pytest.raises(Mistake, match="is encrypted or uses an unusual compression; extract it with another tool"):
        extract(tmp_path / "a.zip", tmp_path / "out", 1000)


@pytest.mark.parametrize("names", [["a", "a"], ["a", "a/b"], ["a/b", "a"], ["a" * 300], ["a\x07"], ["\udcff"]])
def test_impossible_names_are_refused(tmp_path: Path, names: list[str]) -> None:
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        for name in names:
            archive.addfile(tarfile.TarInfo(name))
    with pytest.raises(Mistake, match=r"is damaged or not an archive|is not a safe relative path"):
        extract(tmp_path / "a.tar", tmp_path / "out", 1000)
    assert [path.name for path in tmp_path.iterdir()] == ["a.tar"]


def test_the_number_of_files_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nmt.data.archives._MOST_FILES", 4)
    zipped(tmp_path / "a.zip", {str(number): b"" for number in range(5)})
    with pytest.raises(
        Mistake, match="contains more than 4 files, so nothing was extracted; extract it with another tool"
    ):
        extract(tmp_path / "a.zip", tmp_path / "out", 1000)


@pytest.mark.parametrize("name", ["a.tar.bz2", "a.tar.xz", "a.tgz", "a.zip"])
def test_a_wrong_byte_is_detected(tmp_path: Path, name: str) -> None:
    WRITERS[name](tmp_path / name, {"noise": bytes(i * i % 251 for i in range(9999))})
    content = bytearray((tmp_path / name).read_bytes())
    content[len(content) // 2] ^= 255
    (tmp_path / name).write_bytes(content)
    with pytest.raises(Mistake, match="is damaged or not an archive"):
        extract(tmp_path / name, tmp_path / "out", 10**6)


def test_an_existing_folder_is_not_touched(tmp_path: Path) -> None:
    zipped(tmp_path / "a.zip", FILES)
    (tmp_path / "out").mkdir()
    with pytest.raises(Mistake, match=r"exists, so .*a\.zip cannot be extracted; delete it, or choose another out="):
        extract(tmp_path / "a.zip", tmp_path / "out", 1000)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("a.tar.gz", "a"), ("a.b.ZIP", "a.b"), ("a.en.gz", "a.en"), ("a.txt", None), (".zip", None), ("tar", None)],
)
def test_the_stem_of_an_archive(name: str, expected: str | None) -> None:
    assert stem(name) == expected
