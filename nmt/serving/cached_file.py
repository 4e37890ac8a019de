"""Files of a page, which a browser keeps and asks for again."""

from pathlib import Path

from fastapi import Request, Response
from fastapi.responses import FileResponse


def cached_file(request: Request, path: Path, media_type: str) -> Response:
    """The file, or status 304 without it if the browser's copy is still the same (RFC 9110, section 13.1.2)."""
    headers = {"cache-control": "no-cache"}  # ask before the copy is used
    response = FileResponse(path, stat_result=path.stat(), media_type=media_type, headers=headers)
    tag = response.headers["etag"]
    if tag in request.headers.get("if-none-match", "").replace(" ", "").split(","):
        return Response(status_code=304, headers={**headers, "etag": tag})
    return response
