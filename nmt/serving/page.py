"""The lab's page: its own files, and the files that it shares with the exported viewer."""

from pathlib import Path

from fastapi import APIRouter, HTTPException
from fastapi.responses import FileResponse

from nmt import pages

_OWN = Path(pages.__file__).with_name("lab_page")
_SHARED = Path(pages.__file__).with_name("viewer_page")
_KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
FILES = {
    **{path.name: path for path in sorted(_OWN.iterdir()) if path.suffix in _KINDS},
    **{name: _SHARED / name for name in ("style.css", "matrix.js", "pieces.js", "colors.js")},
}
"""The path of every file that can be requested, by name."""

router = APIRouter(include_in_schema=False)


@router.get("/page/{name}")
async def file(name: str) -> FileResponse:
    """A file of the page. Raises HTTPException 404 for an unknown name."""
    if name not in FILES:
        raise HTTPException(404, "Not Found")
    path = FILES[name]
    return FileResponse(path, media_type=_KINDS[path.suffix], headers={"cache-control": "no-cache"})


@router.get("/")
async def index() -> FileResponse:
    """The lab's page."""
    return await file("index.html")
