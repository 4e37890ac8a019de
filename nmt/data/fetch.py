"""Files from the web: over https alone, resumed where they broke off, and verified before they take their name."""

import hashlib
import http.client
import logging
import os
import ssl
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, NamedTuple
from urllib.parse import quote, urlsplit, urlunsplit

try:
    import fcntl
except ImportError:  # Windows locks no files
    fcntl = None  # type: ignore[assignment]

logger = logging.getLogger(__name__)

Progress = Callable[[int, int], None]
"""progress(size, total): so many bytes are there, of so many in all, 0 where the server does not say."""

_BLOCK = 2**18
_LATER = {408, 425, 429, 500, 502, 503, 504}  # answers after which to try again


class DownloadFailed(Exception):  # noqa: N818
    """The file could not be had; one sentence says why, and what to do."""


class Digest(NamedTuple):
    """What a published file is known by: 'sha256' of its content, or 'git_sha1', that of git's blob of it."""

    kind: str
    value: str

    def of(self, path: Path) -> str:
        """The digest of this kind of a file, in hexadecimal."""
        if self.kind == "sha256":
            found = hashlib.sha256()
        else:
            found = hashlib.sha1(f"blob {path.stat().st_size}\0".encode(), usedforsecurity=False)
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                found.update(block)
        return found.hexdigest()

    def objection(self, path: Path) -> str:
        """A sentence that says that the file is another one; empty when it is the published one."""
        found = self.of(path) if path.is_file() else "of no file"
        return "" if found == self.value else f"{path} has the {self.kind} {found}, the published file {self.value}."


class Limits(NamedTuple):
    """The most bytes of a file, the seconds without a byte after which to try again, how often, and the pause."""

    most_bytes: int = 20 * 2**30
    silence: float = 30.0
    tries: int = 5
    pause: float = 2.0


def checked_address(url: str) -> str:
    """An https address as it is sent, letters beyond ASCII encoded. Raises ValueError for one that is none."""
    try:
        parts = urlsplit(url.strip())
        host, port = (parts.hostname or "").encode("idna").decode(), parts.port
    except ValueError as error:  # UnicodeError is one
        raise ValueError(f"'{url}' is no address ({error}).") from error
    if parts.scheme != "https" or not host or parts.username is not None:
        raise ValueError(f"'{url}' is no https:// address of a host; nothing is fetched over an open connection.")
    path, query = (quote(part, safe="/%:@!$&'()*+,;=~-._?") for part in (parts.path, parts.query))
    return urlunsplit(("https", f"{host}:{port}" if port else host, path, query, ""))


def fetch(
    url: str, path: Path, digest: Digest | None = None, limits: Limits | None = None, progress: Progress | None = None
) -> bool:
    """Downloads a file; False when it is there already, which it only ever is whole.

    Where a digest is known, what has come stays in PATH.part when the connection breaks for good, and the next call
    goes on from there. Raises ValueError for an address that is not https and for a file that is there and is another
    one, DownloadFailed when the file cannot be had.
    """
    url = checked_address(url)
    if path.exists():
        if digest is not None and (objection := digest.objection(path)):
            raise ValueError(f"{objection} Delete it, or choose another folder.")
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    # Without a digest nothing could tell whether two parts belong together.
    part = path.with_name(f"{path.name}.part" if digest else f".{path.name}.{uuid.uuid4().hex}.part")
    try:
        with part.open("ab") as file:
            _lock(file, path)
            _receive(url, file, digest is not None, limits or Limits(), progress or (lambda size, total: None))
            file.flush()
            os.fsync(file.fileno())
            if digest is not None and (objection := digest.objection(part)):
                file.truncate(0)
                raise DownloadFailed(f"{objection} What {url} sent is deleted; run the command again.")
            if fcntl is None:
                file.close()  # Windows renames no open file
            os.replace(part, path)
    finally:
        if part.exists() and (digest is None or not part.stat().st_size):
            part.unlink()
    return True


def _lock(file: BinaryIO, path: Path) -> None:
    """Raises DownloadFailed while another process fetches the file."""
    try:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise DownloadFailed(f"Another process is fetching {path}; wait until it has ended.") from error


def _size(file: BinaryIO) -> int:
    return file.seek(0, os.SEEK_END)


def _receive(url: str, file: BinaryIO, verified: bool, limits: Limits, progress: Progress) -> None:
    """Fills the file up to its end, trying again where the connection breaks or is silent."""
    validator = reason = ""
    for number in range(limits.tries):
        if number:
            logger.warning("%s broke off (%s); going on.", url, reason)
            time.sleep(limits.pause)
        # Bytes of two versions must not meet; a weak validator may stand for others.
        if not verified and (not validator or validator.startswith("W/")):
            file.truncate(0)
        try:
            with _open(url, _size(file), validator, limits.silence) as response:
                validator = response.headers.get("ETag") or response.headers.get("Last-Modified") or ""
                _append(response, file, limits.most_bytes, progress)
            return
        except urllib.error.HTTPError as error:
            reason = f"the server says {error.code} {error.reason}"
            if error.code == 416 and _size(file):
                if error.headers.get("Content-Range") == f"bytes */{_size(file)}":
                    return  # there is no more
                file.truncate(0)
            elif error.code not in _LATER:
                raise DownloadFailed(f"{url} cannot be had: {reason}.") from error
        except ConnectionError as error:
            reason = str(error)
    remedy = "goes on from there; from=FOLDER takes a corpus from a folder instead." if verified else "begins again."
    raise DownloadFailed(
        f"{url} cannot be had ({reason}); {_size(file):,} bytes have come. Is this machine online? "
        f"The same command {remedy}"
    )


class _OnlyHttps(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, req, fp, code, msg, headers, newurl):  # type: ignore[no-untyped-def]
        """Follows no way out of https."""
        if urlsplit(newurl).scheme != "https":
            raise DownloadFailed(f"{req.full_url} leads to {newurl}, which is no https:// address; it is not followed.")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _open(url: str, size: int, validator: str, silence: float) -> http.client.HTTPResponse:
    """The answer of the server, from the byte after the first `size` on. Raises HTTPError or ConnectionError."""
    headers = {"User-Agent": "nmt.download", "Accept-Encoding": "identity"}
    if size:
        headers["Range"] = f"bytes={size}-"
        if validator and not validator.startswith("W/"):
            headers["If-Range"] = validator
    opener = urllib.request.build_opener(_OnlyHttps)
    try:
        response: http.client.HTTPResponse = opener.open(urllib.request.Request(url, headers=headers), timeout=silence)
        return response
    except urllib.error.HTTPError:
        raise
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None) or str(error) or type(error).__name__
        if isinstance(reason, ssl.SSLCertVerificationError):
            raise DownloadFailed(f"The certificate of {urlsplit(url).hostname} is not valid: {reason}.") from error
        raise ConnectionError(str(reason)) from error


def _append(response: http.client.HTTPResponse, file: BinaryIO, most: int, progress: Progress) -> None:
    """Writes what comes to the end of the file, or in its place where the server sends the whole.

    Raises DownloadFailed when it is too much, and ConnectionError when it ends before its time.
    """
    size = _size(file)
    if response.status != 206 or not response.headers.get("Content-Range", "").startswith(f"bytes {size}-"):
        file.truncate(0)
        size = 0
        if response.status == 206:
            raise ConnectionError("the server sent another part than was asked for")
    length = response.headers.get("Content-Length")
    total = size + int(length) if length is not None else 0
    while True:
        progress(size, total)
        if max(size, total) > most:
            file.truncate(0)
            raise DownloadFailed(f"{response.url} has {max(size, total):,} bytes or more; at most {most:,} are taken.")
        try:
            block = response.read1(_BLOCK)
        except (OSError, http.client.HTTPException) as error:
            raise ConnectionError(str(error) or type(error).__name__) from error
        if not block:
            break
        file.write(block)
        size += len(block)
    if size < total:
        raise ConnectionError(f"{total - size:,} of {total:,} bytes are missing")
