import bz2
import gzip
import hashlib
import io
import lzma
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pyarrow
import pytest

from nmt.errors import CheckFailed, Mistake
from nmt.text import compressed
from nmt.text.compressed import compression
from nmt.text.lines import iter_lines, read_lines

TEXT = "một\nhai\n" * 999
COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": lambda data: pyarrow.compress(data, codec="zstd", asbytes=True),
}


@pytest.mark.parametrize("ending", COMPRESS)
def test_compressed_files_are_read_like_others(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"a.vi{ending}"
    path.write_bytes(COMPRESS[ending](TEXT.encode()))
    assert read_lines(path) == TEXT.splitlines()
    assert (compression(path), compression(path.with_suffix(""))) == (ending, "")


@pytest.mark.parametrize("ending", COMPRESS)
@pytest.mark.parametrize("frames", [1, 2])
def test_a_digest_is_that_of_the_whole_file(tmp_path: Path, ending: str, frames: int) -> None:
    path, digest = tmp_path / f"a.vi{ending}", hashlib.sha256()
    path.write_bytes(COMPRESS[ending](TEXT.encode()) * frames)
    assert len(list(iter_lines(path, digest))) == 2 * 999 * frames
    assert digest.hexdigest() == hashlib.sha256(path.read_bytes()).hexdigest()


# What `zstd` makes of a text of two lines, three times. It has a checksum, its last four bytes; pyarrow writes none.
WITH_CHECKSUM = bytes.fromhex("28b52ffd0458850000506de1bb99740a6861690a0100a50b125d0b2f2d")


def test_a_file_of_the_zstd_command_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.vi.zst").write_bytes(WITH_CHECKSUM)
    assert read_lines(tmp_path / "a.vi.zst") == ["một", "hai"] * 3


@pytest.mark.parametrize(("ending", "damage"), [*product(COMPRESS, ["cut short", "changed", "another format"])])
def test_a_damaged_file_is_a_mistake(tmp_path: Path, ending: str, damage: str) -> None:
    path = tmp_path / f"a.vi{ending}"
    data = bytearray(WITH_CHECKSUM if ending == ".zst" else COMPRESS[ending](TEXT.encode()))
    if damage == "cut short":
        del data[-9:]
    elif damage == "changed":
        data[-2 if ending == ".zst" else -6] ^= 255  # a byte of the checksum
    else:
        data = bytearray(b"plain text\n")
    path.write_bytes(data)
    with pytest.raises(Mistake, match=rf"a\.vi\{ending} is damaged or cut short \(.+\): copy it again"):
        read_lines(path)


def test_a_disk_that_cannot_be_read_is_no_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.vi.gz"
    path.write_bytes(gzip.compress(TEXT.encode()))

    def failing(*_: object) -> bytes:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(gzip.GzipFile, "readline", failing)
    with pytest.raises(CheckFailed, match="cannot be read"):
        read_lines(path)


def test_a_disk_that_cannot_be_read_after_the_last_line_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What follows the compressed data is read for the digest alone."""
    path = tmp_path / "a.vi.gz"
    path.write_bytes(b"padding")

    def failing(*_: object) -> int:
        raise OSError(5, "Input/output error")

    monkeypatch.setitem(compressed._OPEN, ".gz", lambda _: io.BytesIO(b"one\n"))
    monkeypatch.setattr(compressed._Hashed, "readinto", failing)
    with pytest.raises(CheckFailed, match=r"a\.vi\.gz cannot be read \(Input/output error\); check the disk"):
        list(iter_lines(path, hashlib.sha256()))
