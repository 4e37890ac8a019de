"""Files that a browser caches, and revalidates before each use."""

import hashlib
from functools import cache
from pathlib import Path

from fastapi import Request, Response
from fastapi.responses import FileResponse


def cached_file(request: Request, path: Path, media_type: str) -> Response:
    """The file, or status 304 without it if the browser has the same (RFC 9110, section 13.1.2)."""
    tag = _tag(path, path.stat().st_mtime_ns)
    headers = {"cache-control": "no-cache", "etag": tag}  # revalidate
    known = {name.strip().removeprefix("W/") for name in request.headers.get("if-none-match", "").split(",")}
    if known & {tag, "*"}:
        return Response(status_code=304, headers=headers)
    return FileResponse(path, media_type=media_type, headers=headers)


@cache
def _tag(path: Path, changed: int) -> str:
    """An entity tag of the content, because packages may give all files the same time.

    `changed`, the file's modification time in ns, is only part of the cache's key.
    """
    return f'"{hashlib.sha256(path.read_bytes()).hexdigest()[:32]}"'
