"""Downloads files over https only; resumes interrupted downloads, and verifies a file before it gets its final name.

pooch cannot replace this module: it restarts an interrupted download at the first byte, does not limit sizes, and does
not support git's digests.
"""

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

from nmt.errors import Mistake, printable
from nmt.files import NOT_THROUGH_LINKS, remove_abandoned_parts, try_lock

logger = logging.getLogger(__name__)

ReportBytes = Callable[[int, int], None]
"""progress(size, total): bytes received so far, and the total, which is 0 if the server does not report it."""

_BLOCK = 2**18
_RETRY = {408, 425, 429, 500, 502, 503, 504}  # HTTP status codes worth retrying


class DownloadFailed(Exception):  # noqa: N818
    """The file could not be downloaded; the message says why."""


class Digest(NamedTuple):
    """Identifies a published file by the 'sha256' of its content or by 'git_sha1', the object name of its git blob."""

    kind: str
    value: str

    def of(self, path: Path) -> str:
        """Computes this kind of digest of a file, in hexadecimal."""
        if self.kind == "sha256":
            digest = hashlib.sha256()
        else:
            # The object name of a blob: git hashes this header before the content.
            digest = hashlib.sha1(f"blob {path.stat().st_size}\0".encode(), usedforsecurity=False)
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                digest.update(block)
        return digest.hexdigest()

    def objection(self, path: Path) -> str:
        """A sentence that says how the file differs from the published one; '' if it does not."""
        if not path.is_file():
            return f"{path} is not a file."
        value = self.of(path)
        return "" if value == self.value else f"{path} has {self.kind} {value}; the published file has {self.value}."


class Limits(NamedTuple):
    """Maximum bytes of a file, seconds without data before a retry, number of tries, and seconds between tries."""

    most_bytes: int = 20 * 2**30
    silence: float = 30.0
    tries: int = 5
    pause: float = 2.0


def checked_address(url: str) -> str:
    """Encodes the non-ASCII characters of an https URL. Raises Mistake if it is not an https URL."""
    try:
        parts = urlsplit(url.strip())
        host, port = (parts.hostname or "").encode("idna").decode(), parts.port
    except ValueError as error:  # UnicodeError is a ValueError
        raise Mistake(f"'{url}' is not a URL ({error}).") from error
    if parts.scheme != "https" or not host or parts.username is not None:
        raise Mistake(f"'{url}' is not an https:// URL; downloads use https only.")
    path, query = (quote(part, safe="/%:@!$&'()*+,;=~-._?") for part in (parts.path, parts.query))
    return urlunsplit(("https", f"{host}:{port}" if port else host, path, query, ""))


def fetch(
    url: str,
    path: Path,
    digest: Digest | None = None,
    limits: Limits | None = None,
    progress: ReportBytes | None = None,
) -> bool:
    """Downloads a file, or returns False if it exists already. `path` never holds an incomplete file.

    If all tries fail and a digest is known, the part received so far stays in PATH.part, and the next call resumes from
    it. Raises Mistake for a URL that is not https or an existing file with a different digest, and DownloadFailed if
    the file cannot be downloaded.
    """
    url = checked_address(url)
    if path.exists():
        if digest is not None and (objection := digest.objection(path)):
            raise Mistake(f"{objection} Delete it, or choose another folder with out=.")
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    if digest is None:
        remove_abandoned_parts(path.parent, path.name)
    # Without a digest, the part that an earlier call left behind might belong to a different version of the file.
    part = path.with_name(f"{path.name}.part" if digest else f".{path.name}.{uuid.uuid4().hex}.part")
    is_mine = False
    try:
        with open(part, "ab", opener=_opened) as file:
            if try_lock(file) is False:
                raise DownloadFailed(f"Another process is downloading {path}; wait until it has finished.")
            is_mine = True
            _receive(
                url,
                file,
                verified=digest is not None,
                limits=limits or Limits(),
                progress=progress or (lambda size, total: None),
            )
            file.flush()
            os.fsync(file.fileno())
            if digest is not None and (objection := digest.objection(part)):
                file.truncate(0)
                raise DownloadFailed(f"{objection} The download from {url} was deleted; run the command again.")
            if os.name == "nt":
                file.close()  # Windows cannot rename an open file
            os.replace(part, path)
    finally:
        if is_mine and part.exists() and (digest is None or not part.stat().st_size):
            part.unlink()
    return True


def _opened(path: str, flags: int) -> int:
    """Opens a file for open(), but no symbolic link."""
    return os.open(path, flags | NOT_THROUGH_LINKS, 0o666)


def _size(file: BinaryIO) -> int:
    return file.seek(0, os.SEEK_END)


def _receive(url: str, file: BinaryIO, *, verified: bool, limits: Limits, progress: ReportBytes) -> None:
    """Downloads the rest of the file, and tries again when the connection breaks or stalls."""
    validator = reason = ""
    for number in range(limits.tries):
        if number:
            logger.warning("The download of %s was interrupted (%s); trying again.", url, reason)
            time.sleep(limits.pause)
        # Never join bytes from two versions of a file. Two versions may have the same weak validator.
        if not verified and (not validator or validator.startswith("W/")):
            file.truncate(0)
        try:
            with _open(url, size=_size(file), validator=validator, silence=limits.silence) as response:
                validator = response.headers.get("ETag") or response.headers.get("Last-Modified") or ""
                _append(response, file, most=limits.most_bytes, progress=progress)
            return
        except urllib.error.HTTPError as error:
            reason = printable(f"HTTP {error.code} {error.reason}")
            if error.code == 416 and _size(file):
                if error.headers.get("Content-Range") == f"bytes */{_size(file)}":
                    return  # the file was complete
                file.truncate(0)
            elif error.code not in _RETRY:
                raise DownloadFailed(f"{url} could not be downloaded: {reason}. Check the URL.") from error
        except ConnectionError as error:
            reason = str(error)
    resume = "resume, or add from=FOLDER to copy the corpus from a folder" if verified else "try again"
    raise DownloadFailed(
        f"{url} could not be downloaded: {reason}, after {_size(file):,} bytes. Check the network connection, then run "
        f"the same command to {resume}."
    )


class _OnlyHttps(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, req, fp, code, msg, headers, newurl):  # type: ignore[no-untyped-def]
        """Follows redirects to https URLs only."""
        if urlsplit(newurl).scheme != "https":
            raise DownloadFailed(f"{req.full_url} redirects to {printable(newurl)}, which is not an https:// URL.")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _open(url: str, *, size: int, validator: str, silence: float) -> http.client.HTTPResponse:
    """Requests the file from byte `size` on. Raises HTTPError, ConnectionError or DownloadFailed."""
    # Uncompressed, because ranges and lengths count the bytes that are sent.
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
            raise DownloadFailed(f"The certificate of {urlsplit(url).hostname} is invalid: {reason}.") from error
        raise ConnectionError(getattr(reason, "strerror", None) or str(reason)) from error


def _append(response: http.client.HTTPResponse, file: BinaryIO, *, most: int, progress: ReportBytes) -> None:
    """Appends a response to the file, or replaces the file if the server sends it from the start.

    Raises DownloadFailed for more than `most` bytes, and ConnectionError for an incomplete response.
    """
    size = _size(file)
    if response.status not in (200, 203, 206):  # 204, for example, has no content
        raise DownloadFailed(f"{response.url} could not be downloaded: HTTP {response.status}. Check the URL.")
    if response.status != 206 or not response.headers.get("Content-Range", "").startswith(f"bytes {size}-"):
        file.truncate(0)
        size = 0
        if response.status == 206:
            raise ConnectionError("the server sent the wrong part of the file")
    length = response.headers.get("Content-Length")
    total = size + int(length) if length is not None else 0
    while True:
        progress(size, total)
        if max(size, total) > most:
            file.truncate(0)
            raise DownloadFailed(
                f"{response.url} has {max(size, total):,} bytes or more, but the limit is {most:,}; raise max_gib."
            )
        try:
            block = response.read1(_BLOCK)  # what has arrived, so that an interruption loses less than a block
        except (OSError, http.client.HTTPException) as error:
            raise ConnectionError(str(error) or type(error).__name__) from error
        if not block:
            break
        file.write(block)
        size += len(block)
    if size < total:
        raise ConnectionError(f"{total - size:,} of {total:,} bytes are missing")
