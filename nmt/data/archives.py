"""What is in a zip, tar or gz file, taken out into one folder and nowhere else."""

import bz2
import errno
import gzip
import lzma
import shutil
import tarfile
import uuid
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO, Any

_TARS = {".tar": open, ".tar.gz": gzip.open, ".tgz": gzip.open, ".tar.bz2": bz2.open, ".tar.xz": lzma.open}
_BLOCK = 2**20
_MOST_FILES = 100_000
# bz2 and lzma in a zip come out in one piece, however large.
_ZIPPED = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
# Of names that cannot be written, and of a decompressor (None); not those of a full disk.
_OF_THE_ARCHIVE = {None, errno.EEXIST, errno.EISDIR, errno.ENOTDIR, errno.ENAMETOOLONG, errno.EINVAL}
_DAMAGED = (zipfile.BadZipFile, tarfile.TarError, lzma.LZMAError, zlib.error, EOFError, RuntimeError)


def stem(name: str) -> str | None:
    """An archive's name without the suffix that makes it one; None for what is none."""
    found = next((suffix for suffix in (*_TARS, ".zip", ".gz") if name.lower().endswith(suffix)), None)
    return name[: -len(found)] if found and len(name) > len(found) else None


def extract(archive: Path, folder: Path, most_bytes: int) -> list[Path]:
    """Writes the files of an archive into a new folder, and lists them.

    The folder is there whole or not at all. Raises FileExistsError when it exists, and ValueError for a damaged
    archive, for one that holds anything but files and folders or would write elsewhere, and for more bytes than
    `most_bytes` or more files than a corpus has.
    """
    if folder.exists():
        raise FileExistsError(f"{folder} exists; delete it, or choose another out, to take {archive} out there.")
    beside = folder.with_name(f".{folder.name}.{uuid.uuid4().hex}")
    beside.mkdir(parents=True)
    try:
        names = _write(archive, beside, most_bytes)
        beside.rename(folder)
    except _DAMAGED as error:
        raise ValueError(f"{archive} is damaged or no archive ({error}); delete it and fetch it again.") from error
    except OSError as error:
        if error.errno not in _OF_THE_ARCHIVE:
            raise
        raise ValueError(f"{archive} is damaged or no archive ({error}); delete it and fetch it again.") from error
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return [folder.joinpath(*name.parts) for name in names]


def _write(archive: Path, folder: Path, most_bytes: int) -> list[PurePosixPath]:
    left, names = most_bytes, []
    for written, source in _files(archive):
        name = _inside(written, archive)
        path = folder.joinpath(*name.parts)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as file:
            while block := source.read(_BLOCK):
                left -= len(block)
                if left < 0:
                    raise ValueError(f"{archive} holds more than {most_bytes:,} bytes; nothing of it is kept.")
                file.write(block)
        names.append(name)
        if len(names) > _MOST_FILES:
            raise ValueError(f"{archive} holds more than {_MOST_FILES:,} files; nothing of it is kept.")
    return names


def _files(archive: Path) -> Iterator[tuple[str, Any]]:
    """Name and content of each file, to be read before the next. Raises ValueError for what is no plain file."""
    name = archive.name.lower()
    suffix = next((suffix for suffix in _TARS if name.endswith(suffix)), None)
    if name.endswith(".zip"):
        yield from _zipped(archive)
    elif suffix:
        with _TARS[suffix](archive, "rb") as unpacked:  # type: ignore[operator]
            yield from _tarred(archive, unpacked)
            # The checksum of what has been read stands behind the padding.
            if unpacked.read(_BLOCK).strip(b"\0") or unpacked.read(1):
                raise ValueError(
                    f"{archive} is damaged or no archive (something follows its end); delete it and fetch it again."
                )
    else:
        with gzip.open(archive, "rb") as unpacked:
            yield archive.name[: -len(".gz")], unpacked


def _zipped(archive: Path) -> Iterator[tuple[str, IO[bytes]]]:
    with zipfile.ZipFile(archive) as zipped:
        for info in zipped.infolist():
            if info.is_dir():
                continue
            if info.compress_type not in _ZIPPED or info.flag_bits & 1:
                raise ValueError(f"{archive} is encrypted or not compressed as usual; unpack it by other means.")
            # A link comes out as a file that holds the name it leads to.
            with zipped.open(info) as source:
                yield info.filename, source


def _tarred(archive: Path, unpacked: Any) -> Iterator[tuple[str, IO[bytes]]]:
    with tarfile.open(fileobj=_SmallReads(unpacked), mode="r:") as tarred:  # type: ignore[call-overload]
        for entry in tarred:
            content = tarred.extractfile(entry) if entry.isfile() else None
            if content is not None:
                yield entry.name, content
            elif not entry.isdir():
                raise ValueError(f"{archive} holds '{entry.name}', which is no file; nothing of it is kept.")
            tarred.members = []  # or it would remember them all


class _SmallReads:
    """A file that gives no more than a block at a time: the size of a tar header is what the header says."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= _BLOCK:
            raise tarfile.ReadError(f"a header of {size:,} bytes")
        return bytes(self._file.read(size))

    def seek(self, offset: int, *whence: Any) -> int:
        return int(self._file.seek(offset, *whence))

    def tell(self) -> int:
        return int(self._file.tell())


def _inside(name: str, archive: Path) -> PurePosixPath:
    """A member's name. Raises ValueError for one that is no plain path below the folder, on any system."""
    path = PurePosixPath(name)
    strange = not name.isprintable() or any(sign in name for sign in "\\:")
    if not path.parts or path.is_absolute() or ".." in path.parts or strange:
        raise ValueError(f"{archive} holds {name!a}, which would be written elsewhere; nothing of it is kept.")
    return path
