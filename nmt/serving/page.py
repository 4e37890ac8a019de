"""Serves the lab: its page, style sheets and modules."""

from fastapi import APIRouter, HTTPException
from fastapi.responses import FileResponse

from nmt.pages.bundle import WEB

_KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
FILES = {path.relative_to(WEB).as_posix(): path for path in sorted(WEB.rglob("*")) if path.suffix in _KINDS}
"""The path of every file that can be requested, by name."""

router = APIRouter(include_in_schema=False)


@router.get("/page/{name:path}")
async def file(name: str) -> FileResponse:
    """A file of the page. Raises HTTPException 404 for an unknown name."""
    if name not in FILES:
        raise HTTPException(404)
    path = FILES[name]
    return FileResponse(path, media_type=_KINDS[path.suffix], headers={"cache-control": "no-cache"})


@router.get("/")
async def index() -> FileResponse:
    """The lab's page."""
    return await file("lab.html")
