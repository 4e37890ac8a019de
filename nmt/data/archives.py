"""Extracts zip, tar and gz files into one folder, and never outside it."""

import bz2
import errno
import gzip
import lzma
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Any

from nmt.errors import Mistake
from nmt.files import atomic_folder

_TARS = {".tar": open, ".tar.gz": gzip.open, ".tgz": gzip.open, ".tar.bz2": bz2.open, ".tar.xz": lzma.open}
_BLOCK = 2**20
_MOST_FILES = 100_000
# zipfile decompresses bz2 and lzma members in one piece, however large they are.
_ZIP_METHODS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
# A ValueError is, for example, a name that cannot be decoded, or text in place of a number in a header.
_DAMAGED = (
    zipfile.BadZipFile,
    tarfile.TarError,
    lzma.LZMAError,
    zlib.error,
    EOFError,
    RuntimeError,
    ValueError,
    OverflowError,
    struct.error,
)
# OSError numbers that mean a damaged archive: those that bad member names cause, and None, which decompressors use.
# A full disk has a different number.
_DAMAGED_ERRNO = {None, errno.EEXIST, errno.EISDIR, errno.ENOTDIR, errno.ENAMETOOLONG, errno.EINVAL}


def stem(name: str) -> str | None:
    """The archive's name without its suffix, or None if the file is not an archive."""
    suffix = next((ending for ending in (*_TARS, ".zip", ".gz") if name.lower().endswith(ending)), None)
    return name[: -len(suffix)] if suffix and len(name) > len(suffix) else None


def extract(archive: Path, folder: Path, most_bytes: int) -> list[Path]:
    """Extracts an archive into a new folder and returns the paths of its files.

    The folder appears only if the whole archive could be extracted. Raises Mistake if it exists already, and if the
    archive is damaged, contains anything except files and folders, would write outside the folder, or contains more
    than `most_bytes` bytes or 100,000 files.
    """
    if folder.exists():
        raise Mistake(f"{folder} exists, so {archive} cannot be extracted; delete it, or choose another out=.")
    try:
        with atomic_folder(folder) as temporary:
            names = _write_members(archive, temporary, most_bytes)
    except OSError as error:
        if error.errno not in _DAMAGED_ERRNO:
            raise
        # The text of an OSError may name the temporary folder.
        raise _damaged(archive, error.strerror or error) from error
    return [folder.joinpath(*name.parts) for name in names]


@contextmanager
def _reading(archive: Path) -> Iterator[None]:
    """Turns an error of the library that reads the archive into Mistake."""
    try:
        yield
    except Mistake:  # a ValueError, too
        raise
    except _DAMAGED as error:
        reason: object = error
        if isinstance(error, ValueError):  # from int() and decode(), whose texts do not say what is wrong
            reason = "a name that is not text" if isinstance(error, UnicodeError) else "a header without a number"
        raise _damaged(archive, reason) from error


def _damaged(archive: Path, reason: object) -> Mistake:
    return Mistake(f"{archive} is damaged or not an archive ({reason}); delete it and download it again.")


def _write_members(archive: Path, folder: Path, most_bytes: int) -> list[PurePosixPath]:
    # Counted as they are written, because the sizes that an archive claims may be wrong.
    left, names = most_bytes, list[PurePosixPath]()
    members = _members(archive)
    while True:
        with _reading(archive):
            found = next(members, None)
        if found is None:
            return names
        member, source = found
        name = _safe_path(member, archive)
        path = folder.joinpath(*name.parts)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as file:
            while True:
                with _reading(archive):
                    block = source.read(_BLOCK)
                if not block:
                    break
                left -= len(block)
                if left < 0:
                    raise Mistake(
                        f"{archive} contains more than {most_bytes:,} bytes, so nothing was extracted; raise max_gib."
                    )
                file.write(block)
        names.append(name)
        if len(names) > _MOST_FILES:
            raise Mistake(
                f"{archive} contains more than {_MOST_FILES:,} files, so nothing was extracted; extract it with "
                "another tool."
            )


def _members(archive: Path) -> Iterator[tuple[str, Any]]:
    """Yields the name of each file and a stream of its contents. Read the stream before asking for the next file.

    Raises Mistake for links and devices.
    """
    name = archive.name.lower()
    suffix = next((suffix for suffix in _TARS if name.endswith(suffix)), None)
    if name.endswith(".zip"):
        yield from _zipped(archive)
    elif suffix:
        with _TARS[suffix](archive, "rb") as unpacked:  # type: ignore[operator]
            yield from _tarred(archive, unpacked)
            # Reading to the end verifies the checksum, which comes after the padding.
            if unpacked.read(_BLOCK).strip(b"\0") or unpacked.read(1):
                raise _damaged(archive, "data after the end")
    else:
        with gzip.open(archive, "rb") as unpacked:
            yield archive.name[: -len(".gz")], unpacked


def _zipped(archive: Path) -> Iterator[tuple[str, IO[bytes]]]:
    with zipfile.ZipFile(archive) as zipped:
        for info in zipped.infolist():
            if not info.filename:
                raise _damaged(archive, "a file without a name")
            if info.is_dir():
                continue
            if info.compress_type not in _ZIP_METHODS or info.flag_bits & 1:
                raise Mistake(f"{archive} is encrypted or uses an unusual compression; extract it with another tool.")
            # zipfile reads a link as a file that contains the name of its target.
            with zipped.open(info) as source:
                yield info.filename, source


def _tarred(archive: Path, unpacked: Any) -> Iterator[tuple[str, IO[bytes]]]:
    with tarfile.open(fileobj=_SmallReads(unpacked), mode="r:") as tarred:  # type: ignore[call-overload]
        for entry in tarred:
            content = tarred.extractfile(entry) if entry.isfile() else None
            if content is not None:
                yield entry.name, content
            elif not entry.isdir():
                raise Mistake(
                    f"{archive} contains '{entry.name}', which is not a file or folder; nothing was extracted."
                )
            tarred.members = []  # otherwise tarfile keeps all of them in memory


class _SmallReads:
    """Rejects reads of more than one block, because a tar header can claim any size."""

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


def _safe_path(name: str, archive: Path) -> PurePosixPath:
    """Returns the path of a member. Raises Mistake if it is unprintable or could leave the folder on any system."""
    path = PurePosixPath(name)
    strange = not name.isprintable() or any(sign in name for sign in "\\:")
    if not path.parts or path.is_absolute() or ".." in path.parts or strange:
        raise Mistake(f"{archive} contains {name!a}, which is not a safe relative path; nothing was extracted.")
    return path
