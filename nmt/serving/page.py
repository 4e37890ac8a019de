"""Serves the lab: its page, style sheets and modules."""

from io import BytesIO
from typing import Annotated

import segno
from fastapi import APIRouter, HTTPException, Query, Request, Response

from nmt.errors import TemplatedMessage
from nmt.pages.bundle import WEB
from nmt.serving.cached_file import cached_file
from nmt.serving.service import ThisService

_KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
FILES = {path.relative_to(WEB).as_posix(): path for path in sorted(WEB.rglob("*")) if path.suffix in _KINDS}
"""The path of every file that can be requested, by name."""

_LONGEST_CODE = 1500
"""Maximum length of the text in bytes of UTF-8: a camera cannot read a denser code from a screen.

The page knows it too; see nmt/pages/web/lab/share.js.
"""

router = APIRouter(include_in_schema=False)


@router.get("/page/{name:path}")
async def file(request: Request, name: str) -> Response:
    """A file of the page. Raises HTTPException 404 for an unknown name."""
    if name not in FILES:
        raise HTTPException(404)
    path = FILES[name]
    return cached_file(request, path, _KINDS[path.suffix])


@router.get("/")
async def index(request: Request) -> Response:
    """The lab's page."""
    return await file(request, "lab.html")


@router.get("/qr.svg")
def qr_code(
    request: Request, service: ThisService, text: Annotated[str, Query(min_length=1, max_length=_LONGEST_CODE)]
) -> Response:
    """A picture of a QR code, black on white in dark mode too.

    Raises HTTPException 403 if the API key is missing or unknown, and 400 if the text is too long.
    """
    # FastAPI runs a plain function in a thread: a long code takes a tenth of a second.
    service.check_key(request)
    if (number := len(text.encode())) > _LONGEST_CODE:
        raise HTTPException(
            400,
            TemplatedMessage(
                "text has {number} bytes in UTF-8; it must have at most {most}.", number=number, most=_LONGEST_CODE
            ),
        )
    picture = BytesIO()
    segno.make_qr(text, error="l").save(picture, kind="svg", light="#fff", omitsize=True, xmldecl=False)
    return Response(picture.getvalue(), media_type="image/svg+xml")
