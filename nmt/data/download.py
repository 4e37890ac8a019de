"""Files from the web: over https alone, resumed where they broke off, and verified before they take their name."""

import hashlib
import http.client
import logging
import os
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

logger = logging.getLogger(__name__)

Progress = Callable[[int, int], None]
"""progress(new, total): so many more bytes of so many in all, 0 where the server does not say."""

_BLOCK = 2**18
_LATER = {408, 425, 429, 500, 502, 503, 504}  # answers after which to try again


class DownloadFailed(Exception):  # noqa: N818
    """The file could not be had; one sentence says why, and what to do."""


class Digest(NamedTuple):
    """What a published file is known by: the SHA-256 of its content, or git's SHA-1 of it as a blob."""

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
        found = self.of(path)
        return "" if found == self.value else f"{path} has the {self.kind} {found}, the published file {self.value}."


class Limits(NamedTuple):
    """The most bytes of a file, the seconds without a byte after which to try again, and how often to try."""

    most_bytes: int = 20 * 2**30
    silence: float = 30.0
    tries: int = 5
    pause: float = 2.0


def fetch(
    url: str, path: Path, digest: Digest | None = None, limits: Limits | None = None, progress: Progress | None = None
) -> bool:
    """Downloads a file; False when it is there already, and is the published one.

    What has arrived stays in PATH.part when the connection breaks; the next call goes on from there where a digest can
    tell that the parts belong together, and begins again where none is known. Raises ValueError for an address that is
    not https and for a file that is there and is another one, DownloadFailed when the file cannot be had.
    """
    if urlsplit(url).scheme != "https" or not urlsplit(url).hostname:
        raise ValueError(f"'{url}' is no https:// address; nothing is fetched over an open connection.")
    if path.exists():
        if digest is None:
            raise ValueError(f"{path} is there already, and nothing tells whether it is whole; delete it to fetch it.")
        if objection := digest.objection(path):
            raise ValueError(f"{objection} Delete it, or choose another folder.")
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    if digest is None:
        part.unlink(missing_ok=True)
    _receive(url, part, limits or Limits(), progress or (lambda new, total: None))
    if digest is not None and (objection := digest.objection(part)):
        part.unlink()
        raise DownloadFailed(f"{objection} What {url} sent is deleted; run the command again, or get it elsewhere.")
    os.replace(part, path)
    return True


def _receive(url: str, part: Path, limits: Limits, progress: Progress) -> None:
    """Fills `part` up to its end, trying again where the connection breaks or is silent."""
    validator = ""
    for remaining in reversed(range(limits.tries)):
        try:
            with _open(url, part, validator, limits.silence) as response:
                validator = response.headers.get("ETag") or response.headers.get("Last-Modified") or ""
                _append(response, part, limits.most_bytes, progress)
            return
        except urllib.error.HTTPError as error:
            if error.code == 416 and part.exists():
                if error.headers.get("Content-Range") == f"bytes */{part.stat().st_size}":
                    return  # there is no more
                part.unlink()
            elif error.code not in _LATER or not remaining:
                raise DownloadFailed(f"{url} cannot be had: the server says {error.code} {error.reason}.") from error
        except (urllib.error.URLError, http.client.HTTPException, ssl.SSLError, ConnectionError, TimeoutError) as error:
            reason = getattr(error, "reason", None) or str(error) or type(error).__name__
            if isinstance(reason, ssl.SSLCertVerificationError):
                raise DownloadFailed(f"The certificate of {urlsplit(url).hostname} is not valid: {reason}.") from error
            if not remaining:
                size = part.stat().st_size if part.exists() else 0
                raise DownloadFailed(
                    f"{url} cannot be had ({reason}); {size:,} bytes have come. Is this machine online? The same "
                    "command goes on from there; from=FOLDER takes a corpus from a folder instead."
                ) from error
            logger.warning("%s broke off (%s); going on.", url, reason)
        time.sleep(limits.pause)


class _OnlyHttps(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, req, fp, code, msg, headers, newurl):  # type: ignore[no-untyped-def]
        """Follows no way out of https."""
        if urlsplit(newurl).scheme != "https":
            raise DownloadFailed(f"{req.full_url} leads to {newurl}, which is no https:// address; it is not followed.")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _open(url: str, part: Path, validator: str, silence: float) -> http.client.HTTPResponse:
    """The answer of the server, from the first byte that is not in `part` on."""
    headers = {"User-Agent": "nmt.download", "Accept-Encoding": "identity"}
    if part.exists():
        headers["Range"] = f"bytes={part.stat().st_size}-"
        # A weak validator may stand for other bytes.
        if validator and not validator.startswith("W/"):
            headers["If-Range"] = validator
    opener = urllib.request.build_opener(_OnlyHttps)
    response: http.client.HTTPResponse = opener.open(urllib.request.Request(url, headers=headers), timeout=silence)
    return response


def _append(response: http.client.HTTPResponse, part: Path, most: int, progress: Progress) -> None:
    """Writes what comes to the end of `part`, or in its place where the server sends the whole.

    Raises DownloadFailed when it is too much, and ConnectionError when it ends before its time.
    """
    size = 0
    if response.status == 206:
        size = part.stat().st_size
        if not response.headers.get("Content-Range", "").startswith(f"bytes {size}-"):
            part.unlink()
            raise ConnectionError("the server sent another part than was asked for")
    length = response.headers.get("Content-Length")
    total = size + int(length) if length is not None else 0
    progress(size, total)
    with part.open("ab" if size else "wb") as file:
        while total <= most and size <= most:
            if not (block := response.read1(_BLOCK)):
                break
            file.write(block)
            size += len(block)
            progress(len(block), total)
        else:
            raise DownloadFailed(f"{response.url} has {max(size, total):,} bytes; at most {most:,} are taken.")
    if size < total:
        raise ConnectionError(f"{total - size:,} of {total:,} bytes are missing")
