"""What is in a zip, tar or gz file, taken out into one folder and nowhere else."""

import gzip
import lzma
import shutil
import tarfile
import uuid
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO

_TARS = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
_BLOCK = 2**20


def stem(name: str) -> str | None:
    """An archive's name without the suffix that makes it one; None for what is none."""
    found = next((suffix for suffix in (*_TARS, ".zip", ".gz") if name.lower().endswith(suffix)), None)
    return name[: -len(found)] if found and len(name) > len(found) else None


def extract(archive: Path, folder: Path, most_bytes: int) -> list[Path]:
    """Writes the files of an archive into a new folder, and lists them.

    The folder is there whole or not at all. Raises FileExistsError when it exists, and ValueError for a damaged
    archive, for one that holds anything but files and folders or would write elsewhere, and for more bytes than
    `most_bytes`.
    """
    if folder.exists():
        raise FileExistsError(f"{folder} exists; delete it, or choose another out, to take {archive} out there.")
    beside = folder.with_name(f".{folder.name}.{uuid.uuid4().hex}")
    beside.mkdir(parents=True)
    try:
        names = _write(archive, beside, most_bytes)
        beside.rename(folder)
    except (zipfile.BadZipFile, tarfile.TarError, gzip.BadGzipFile, lzma.LZMAError, zlib.error, EOFError) as error:
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
    return names


def _files(archive: Path) -> Iterator[tuple[str, IO[bytes]]]:
    """Name and content of each file, to be read before the next. Raises ValueError for a link or a device."""
    if archive.name.lower().endswith(".zip"):
        with zipfile.ZipFile(archive) as zipped:
            for info in zipped.infolist():
                if not info.is_dir():
                    # A link comes out as a file that holds the name it leads to.
                    with zipped.open(info) as source:
                        yield info.filename, source
    elif archive.name.lower().endswith(_TARS):
        with tarfile.open(archive) as tarred:
            for entry in tarred:
                content = tarred.extractfile(entry) if entry.isfile() else None
                if content is not None:
                    yield entry.name, content
                elif not entry.isdir():
                    raise ValueError(f"{archive} holds '{entry.name}', which is no file; nothing of it is kept.")
    else:
        with gzip.open(archive, "rb") as unpacked:
            yield archive.name[: -len(".gz")], unpacked  # type: ignore[misc]


def _inside(name: str, archive: Path) -> PurePosixPath:
    """A member's name. Raises ValueError for one that is no plain path below the folder, on any system."""
    path = PurePosixPath(name)
    if not path.parts or path.is_absolute() or ".." in path.parts or any(sign in name for sign in "\\:\0"):
        raise ValueError(f"{archive} holds '{name}', which would be written elsewhere; nothing of it is kept.")
    return path
