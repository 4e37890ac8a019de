"""Checks paths before any work starts: files and folders that settings name, and links out of a folder."""

import errno
import os
import shlex
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from nmt.errors import Mistake, printable

# These commands keep the archive.
_UNPACK = {".gz": "gunzip -k", ".zst": "unzstd", ".xz": "unxz -k", ".bz2": "bunzip2 -k"}


def check_utf8(text: str) -> None:
    """Raises Mistake for an argument or a file name with bytes that are not UTF-8: no file of a run could hold it."""
    if any("\udc80" <= character <= "\udcff" for character in text):
        raise Mistake(
            f"'{printable(text)}' has bytes that are not UTF-8: rename the file, as in "
            "convmv -f latin1 -t utf8 --notest FILE."
        )


def existing_file(key: str, value: Any, compressed: Iterable[str] = ()) -> Path:
    """The file named by a configuration key. Raises Mistake if it does not exist or is a folder.

    `compressed` are the endings of compressed files that the command can read.
    """
    path = Path(str(value))
    if path.is_dir():
        raise Mistake(f"{key} is {path}, which is a folder; name a file.")
    if path.exists() and not path.is_file():
        raise Mistake(f"{key} is {path}, which is a device or a pipe; save its contents to a file, and name that.")
    if not path.is_file():
        for archive in (path.with_name(f"{path.name}{ending}") for ending in compressed):
            if archive.is_file():
                raise Mistake(
                    f"{key} is {path}, which does not exist: name {archive} instead, which need not be unpacked."
                )
        raise Mistake(f"{key} is {path}, which does not exist{how_to_unpack(path) or '; check the path.'}")
    return path


def how_to_unpack(path: Path) -> str:
    """The end of a message about a missing file: the command that unpacks its archive beside it, or ''."""
    for ending, command in _UNPACK.items():
        archive = path.with_name(f"{path.name}{ending}")
        if not path.is_file() and archive.is_file():
            return f", only {archive.name}; unpack it with: {shlex.join([*command.split(), str(archive)])}"
    return ""


def folder_to_write(key: str, value: Any) -> Path:
    """The folder named by a configuration key, created if necessary. Raises Mistake if it is not writable."""
    check_writable(key, value)
    path = Path(str(value))
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Mistake(f"{key} is {path}, which cannot be created ({error.strerror}); choose another folder.") from error
    return path


def cache_folder(value: Any) -> Path:
    """The folder named by cache_dir, created if necessary. It may be read-only if it contains everything needed."""
    path = Path(str(value))
    return path if path.is_dir() else folder_to_write("cache_dir", path)


def check_folder(key: str, value: Any) -> None:
    """Raises Mistake if a configuration key names something other than a folder, a path below a file, or a path that
    the file system refuses because it is too long.
    """
    existing = _first_existing(value)
    if not existing.is_dir():
        raise Mistake(f"{key} is {value}, but {existing} is {not_a_folder(existing)}; choose another folder.")
    check_name(key, value)


def check_name(key: str, value: Any) -> None:
    """Raises Mistake if the file system refuses a path because it, or a name in it, is too long."""
    existing, path = _first_existing(value), Path(str(value))
    for tried in (path, *(existing / name for name in path.parts)):  # lstat stops at the first missing folder
        try:
            tried.lstat()
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:
                raise Mistake(
                    f"{key} is {value}, which cannot be created ({error.strerror}); choose a shorter path."
                ) from error


def not_a_folder(path: Path) -> str:
    """Describes an existing path that is not a folder: a file or a broken symbolic link."""
    if path.exists():
        return "a file"
    try:
        path.stat()
    except OSError as error:
        if error.errno == errno.ELOOP:
            return "a symbolic link that leads back to itself"
    return "a broken symbolic link"


def check_writable(key: str, value: Any) -> None:
    """Raises Mistake like `check_folder`, and also if the folder is not writable."""
    check_folder(key, value)
    existing = _first_existing(value)
    try:
        if not os.access(existing, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        # Checking the permissions is not enough: root has all of them, even in /proc.
        with tempfile.TemporaryFile(dir=existing):
            pass
    except OSError as error:
        raise Mistake(
            f"{key} is {value}, but {existing} cannot be written to ({error.strerror}); choose another folder."
        ) from error


def _first_existing(value: Any) -> Path:
    """The path itself or its nearest parent that exists; broken links count as existing."""
    path = Path(str(value))
    return next((folder for folder in (path, *path.parents) if os.path.lexists(folder)), Path(path.anchor))


def check_links(folder: Path, names: Iterable[str]) -> None:
    """Raises Mistake if one of these sub-folders, or a folder in it, is a symbolic link that leads out of `folder`.

    A broken link is refused too. Links to files are allowed: writers replace them, and never write to their targets.
    """
    for top in (folder / name for name in names):
        check_link(top, folder)
        for parent, folders, files in os.walk(top):
            for name in (*folders, *files):
                check_link(Path(parent, name), folder)


def real_path(path: Path) -> Path:
    """The path without links. Unlike Path.resolve, it accepts a link that leads back to itself."""
    return Path(os.path.realpath(path))


def check_link(path: Path, folder: Path) -> None:
    """Raises Mistake if a path below `folder` is a symbolic link out of it, other than to a file."""
    if not path.is_symlink() or path.is_file():
        return
    target = real_path(path)
    if not target.is_relative_to(real_path(folder)):
        raise Mistake(
            f"{path} is a symbolic link to {target}, outside {folder}, where no command may write: replace it "
            "with a folder, or mount the other disk there."
        )
    if not path.exists():
        raise Mistake(f"{path} is {not_a_folder(path)}: delete it.")
