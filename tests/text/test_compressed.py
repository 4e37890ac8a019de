import bz2
import gzip
import hashlib
import lzma
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pyarrow
import pytest

from nmt.errors import CheckFailed, Mistake
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


@pytest.mark.parametrize(
    ("ending", "damage"),
    # pyarrow writes no checksum into .zst.
    [case for case in product(COMPRESS, ["cut short", "changed", "another format"]) if case != (".zst", "changed")],
)
def test_a_damaged_file_is_a_mistake(tmp_path: Path, ending: str, damage: str) -> None:
    path = tmp_path / f"a.vi{ending}"
    data = bytearray(COMPRESS[ending](TEXT.encode()))
    if damage == "cut short":
        del data[-9:]
    elif damage == "changed":
        data[-6] ^= 255  # a byte of the checksum
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
