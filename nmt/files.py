"""Writes files and folders whole or not at all, and locks folders."""

import errno
import json
import logging
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from nmt.errors import Mistake
from nmt.paths import check_link

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

logger = logging.getLogger(__name__)

PART = ".part"
"""The suffix of a file or folder that is still being written."""
_FORMER = ".former"
"""The suffix of a temporary folder that holds what is being replaced until the new one is in its place."""
_PART_NAME = 50  # characters, of four bytes at most
NOT_THROUGH_LINKS: int = getattr(os, "O_NOFOLLOW", 0)
"""Makes os.open refuse a symbolic link; Windows has no such flag, and lets only administrators make links."""

_NO_LOCKS = (errno.EBADF, errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)
_held: set[int] = set()


@contextmanager
def atomic_write(path: Path, former: Path | None = None) -> Iterator[Path]:
    """Yields the path of a temporary file to write. On success the file replaces `path`; on an error it is deleted.

    If `former` is given, the previous file at `path` is moved there. A symbolic link at either path is replaced, not
    followed. After a power cut, the previous file may be back: to sync the folder too would take as long again for
    each of thousands of pictures.
    """
    with _new_part(path, _create_file) as part:
        try:
            yield part
            sync(part)  # so that a power cut cannot leave an empty file under the final name
            if former is not None and path.exists():
                os.replace(path, former)
            os.replace(part, path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise


@contextmanager
def atomic_folder(path: Path, replace: bool = False) -> Iterator[Path]:
    """Yields a temporary folder to fill. On success it is renamed to `path`; on an error it is deleted.

    If `path` is a non-empty folder by then, `replace` decides whether the new folder replaces it or is discarded. A
    symbolic link at `path` is replaced, not followed. If the process is killed while it replaces a folder, the next
    writer finds the former one put back.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    remove_abandoned_parts(path.parent, path.name)
    with _new_part(path, Path.mkdir) as part:
        try:
            yield part
            for folder, _, names in os.walk(part):
                for name in [*names, "."]:
                    sync(Path(folder, name))
            in_the_way = os.path.lexists(path) if replace else path.is_symlink() and not path.is_dir()
            if in_the_way:
                # A rename cannot replace a folder with files in it, nor a link.
                with _new_part(path, Path.mkdir, _FORMER) as former:
                    try:
                        path.rename(former / path.name)
                        part.rename(path)
                        sync(path.parent)
                    finally:
                        _clear(former)
                return
            try:
                part.rename(path)
            except OSError:
                if path.is_dir():
                    return  # another process was faster
                raise
            sync(path.parent)
        finally:
            shutil.rmtree(part, ignore_errors=True)


@contextmanager
def temporary_folder(parent: Path, name: str) -> Iterator[Path]:
    """Yields a new folder in `parent`, and deletes it at the end. First deletes what killed processes left behind."""
    remove_abandoned_parts(parent, name)
    with _new_part(parent / name, Path.mkdir) as folder:
        try:
            yield folder
        finally:
            remove(folder)


@contextmanager
def _new_part(path: Path, create: Callable[[Path], None], suffix: str = PART) -> Iterator[Path]:
    """Creates a file or folder for what will be at `path`, and locks it, so that it is not taken for an abandoned one.

    A killed process loses its locks.
    """
    while True:
        part = _part_of(path, suffix)
        create(part)
        try:
            with _part_lock(part) as is_ours:
                if is_ours:
                    yield part
                    return
        except BaseException:
            _clear(part)
            raise


@contextmanager
def _part_lock(part: Path) -> Iterator[bool]:
    """Locks a new part; yields whether it is still there. It is not if another process took it for an abandoned one."""
    if fcntl is None:
        yield True
        return
    try:
        handle = os.open(part, os.O_RDONLY | NOT_THROUGH_LINKS)
    except FileNotFoundError:
        yield False
        return
    _held.add(handle)
    try:
        yield _lock_quietly(handle) is not False and _is_open_at(handle, part)
    finally:
        _release(handle)


def _create_file(path: Path) -> None:
    # A folder that somebody else made may contain links that lead anywhere, so the name must be new.
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | NOT_THROUGH_LINKS, 0o666))


def _part_of(path: Path, suffix: str) -> Path:
    """A new name, which nobody can predict, beside `path`."""
    # Of a long name only the beginning, because a file system limits the length of a name.
    return path.with_name(f".{path.name[:_PART_NAME]}.{secrets.token_hex(8)}{suffix}")


def is_part(path: Path, name: str) -> bool:
    """Whether a path is what an interrupted writer of a file of that name left behind."""
    return path.name.startswith(f".{name[:_PART_NAME]}.") and path.suffix in (PART, _FORMER)


def _parts(folder: Path) -> list[Path]:
    return [part for suffix in (PART, _FORMER) for part in folder.glob(f".*{suffix}")]


def _clear(part: Path) -> None:
    """Deletes what a writer left behind. What it was replacing is put back first if nothing is in its place."""
    if part.suffix == _FORMER and part.is_dir() and not part.is_symlink():
        for former in part.iterdir():
            path = part.with_name(former.name)
            if is_part(part, path.name) and not os.path.lexists(path):
                former.rename(path)
    remove(part)


def sync(path: Path) -> None:
    """Waits until a file, or the list of files of a folder, is on the disk."""
    if os.name == "nt" and path.is_dir():  # Windows opens no folders
        return
    handle = os.open(path, os.O_RDWR if path.is_file() else os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def remove(path: Path) -> None:
    """Deletes a file, or a folder with its contents, as far as possible; of a symbolic link, only the link."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def remove_parts(folder: Path) -> None:
    """Deletes what interrupted writers left behind in a folder. No other process may be writing there."""
    for part in _parts(folder):
        _clear(part)


def remove_parts_of(path: Path) -> None:
    """Deletes what interrupted writers of a file left behind. No other process may be writing it."""
    for part in path.parent.iterdir():
        if is_part(part, path.name):
            _clear(part)


def remove_abandoned_parts(folder: Path, name: str | None = None) -> None:
    """Deletes what killed writers left behind in a folder, but nothing that a running process writes.

    With `name`, only that of a file or folder of this name. Without locks, nothing is deleted, because the two cannot
    be told apart.
    """
    if fcntl is None:
        return
    for part in _parts(folder):
        if name is not None and not is_part(part, name):
            continue
        with suppress(OSError):  # gone, or of another user
            handle = os.open(part, os.O_RDONLY | NOT_THROUGH_LINKS)
            try:
                if _lock_quietly(handle):
                    _clear(part)
            finally:
                os.close(handle)


def check_size(file: Path, most_bytes: int, remedy: str = "Copy the original file back.") -> None:
    """Raises Mistake if a file is larger. A file with holes takes no space in an archive, but would fill the memory."""
    if (size := file.stat().st_size) > most_bytes:
        raise Mistake(f"{file} has {size:,} bytes, but such a file never has more than {most_bytes:,}. {remedy}")


def subfolder(folder: Path, name: str) -> Path:
    """A folder directly below another one, created if necessary, without what killed writers left behind in it.

    Raises Mistake like `check_link`.
    """
    path = folder / name
    check_link(path, folder)
    path.mkdir(exist_ok=True)
    remove_abandoned_parts(path)
    return path


def write_bytes(path: Path, content: bytes) -> None:
    """Writes a file atomically, and creates its folder if necessary."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as part:
        part.write_bytes(content)


def write_text(path: Path, text: str) -> None:
    """Writes a text file in UTF-8 like `write_bytes`; the ends of its lines are not changed."""
    write_bytes(path, text.encode())


def write_json(path: Path, content: Any) -> None:
    """Writes a JSON file atomically, and creates its folder if necessary.

    What killed writers of the file left behind is deleted.
    """
    remove_abandoned_parts(path.parent, path.name)
    text = json.dumps(content, indent=2, ensure_ascii=False)
    write_text(path, f"{text}\n")


def read_json(path: Path) -> Any:
    """The content of a JSON file. Raises ValueError if it is not JSON in UTF-8, and RecursionError if it nests deeply.

    Editors on Windows put a byte order mark in front, which is dropped.
    """
    return json.loads(path.read_text(encoding="utf-8-sig"))


# filelock and portalocker would leave a lock file in the run directory; this locks the folder itself.
@contextmanager
def locked(folder: Path, wait: bool = False, task: str | None = None) -> Iterator[bool]:
    """Locks a folder for this process, and creates it if necessary. Yields whether it is locked.

    `task` describes what the process with the lock does, for the message that waiting processes print. The lock is
    released when the process ends, even if it is killed and its forked data loaders live on. If another process holds
    the lock, this waits if `wait` is true, and raises Mistake otherwise. Nothing is locked on Windows or on file
    systems without locks, such as some NFS mounts.
    """
    if fcntl is None:
        folder.mkdir(parents=True, exist_ok=True)
        yield False
        return
    waited = False
    while True:
        handle = _open_folder(folder)
        _held.add(handle)
        try:
            while (lock := try_lock(handle)) is False:
                if not wait:
                    raise Mistake(
                        f"Another process is writing to {folder}: wait until it has ended, or choose another folder."
                    )
                if not waited:
                    logger.info("Waiting until another process has finished %s", task or f"writing to {folder}")
                waited = True
                time.sleep(0.2)
            # The one that held the lock may have deleted the folder, and another process locks a new one.
            if _is_open_at(handle, folder):
                yield lock is True
                return
        finally:
            _release(handle)


def _release(handle: int) -> None:
    if handle in _held:  # not in a process that was forked while the handle was open
        _held.remove(handle)
        os.close(handle)


def _open_folder(folder: Path) -> int:
    """A handle of a folder, which is created if necessary, also if others delete it meanwhile."""
    while True:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            return os.open(folder, os.O_RDONLY)
        except FileNotFoundError:
            pass
        except FileExistsError:
            if os.path.lexists(folder) and not folder.is_dir():
                raise


def _is_open_at(handle: int, path: Path) -> bool:
    """Whether an open handle still refers to what is at the path."""
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False


def check_unlocked(folder: Path) -> None:
    """Raises Mistake if another process has locked the folder."""
    if folder.is_dir():
        with locked(folder):
            pass


def try_lock(file: BinaryIO | int) -> bool | None:
    """Locks an open file until it is closed. False: another process holds the lock. None: there are no locks here."""
    locks = _lock_quietly(file)
    if locks is None and fcntl is not None:
        logger.warning("This file system does not support locks: never let two commands write to the same folder.")
    return locks


def _lock_quietly(file: BinaryIO | int) -> bool | None:
    """Does what `try_lock` does, without its warning."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
        return None
    return True


def _close_inherited_locks() -> None:
    """Closes the handles that a forked process inherited: a lock is held until every process has closed its handle."""
    for handle in _held:
        os.close(handle)
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_inherited_locks)
