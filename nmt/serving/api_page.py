"""The OpenAPI description of the HTTP interface at /openapi.json, and a page for it at /docs, which works offline.

Both are in the language of the request, English or Vietnamese.
"""

from importlib import resources
from pathlib import Path
from typing import Any

from fastapi import APIRouter, FastAPI, HTTPException, Request, Response
from fastapi.openapi.utils import get_openapi
from fastapi.responses import JSONResponse

from nmt.serving.api_page_vietnamese import TEXTS
from nmt.serving.cached_file import cached_file
from nmt.serving.requests import Failure
from nmt.serving.server_messages import request_language

_PAGE = Path(__file__).with_name("api_page")
# FastAPI's own page loads Swagger UI from another server; this package contains a copy of it.
_SWAGGER = Path(str(resources.files("fastapi_swagger.resources")))
FILES = {
    "start.js": (_PAGE / "start.js", "text/javascript"),
    "swagger-ui-bundle.js": (_SWAGGER / "swagger-ui-bundle.js", "text/javascript"),
    "swagger-ui.css": (_SWAGGER / "swagger-ui.css", "text/css"),
}
"""The path and media type of each file of the page, by name."""

SUMMARY = "Translates with trained runs and shows their attention."
DESCRIPTION = """
Programs written for [LibreTranslate](https://docs.libretranslate.com/) or DeepL can use the first two groups unchanged.
The lab's own interface shows what a run attends to. Every error is a JSON object
whose `error` field contains one sentence; in DeepL's interface, `message` repeats it.

If the server requires an API key, send it as `Authorization: Bearer KEY`, as `Authorization: DeepL-Auth-Key KEY`, as
`api_key` in the query string, or, in LibreTranslate's interface, as `api_key` in the body.
"""
TAGS = [
    {"name": "LibreTranslate", "description": "LibreTranslate's interface: JSON, forms, or query parameters."},
    {"name": "DeepL", "description": "Translation in DeepL's API format, as JSON or form data."},
    {"name": "lab", "description": "Attention, scores, alternatives and interventions, one sentence at a time."},
    {"name": "monitoring", "description": "A health check, and metrics for Prometheus."},
]

router = APIRouter(include_in_schema=False)


@router.get("/docs")
async def index(request: Request) -> Response:
    """The documentation page."""
    return cached_file(request, _PAGE / "index.html", "text/html")


@router.get("/docs/{name}")
async def file(request: Request, name: str) -> Response:
    """A file of the page. Raises HTTPException 404 for an unknown name."""
    if name not in FILES:
        raise HTTPException(404)
    path, kind = FILES[name]
    return cached_file(request, path, kind)


@router.get("/openapi.json")
async def openapi(request: Request, lang: str | None = None) -> JSONResponse:
    """The description, in the language `lang` if it is given, otherwise in the one that the request prefers."""
    described = request.app.openapi()
    is_vietnamese = (lang or request_language(request)).startswith("vi")
    headers = {"vary": "Accept-Language"}
    return JSONResponse(in_vietnamese(described) if is_vietnamese else described, headers=headers)


def in_vietnamese(described: Any) -> Any:
    """A description, or a part of it, with its texts in Vietnamese."""
    if isinstance(described, list):
        return [in_vietnamese(part) for part in described]
    if not isinstance(described, dict):
        return described
    return {
        name: TEXTS.get(part, part)
        if name in ("description", "summary") and isinstance(part, str)
        else in_vietnamese(part)
        for name, part in described.items()
    }


def description(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI description of an application's endpoints."""
    described = get_openapi(
        title=app.title,
        version=app.version,
        summary=SUMMARY,
        description=DESCRIPTION,
        routes=app.routes,
        tags=TAGS,
        servers=[{"url": "."}],  # relative to /openapi.json, so that the page works behind a proxy's prefix
    )
    for operations in described["paths"].values():
        for operation in operations.values():
            operation["summary"] = operation.pop("description")  # the docstring, in place of the function's name
            operation["responses"].pop("422", None)  # FastAPI's own status for invalid fields; ours is 400
    schemas = described["components"]["schemas"]
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    schemas["Failure"] = Failure.model_json_schema()
    scheme = {"type": "http", "scheme": "bearer", "description": "an API key; only needed if the server has keys"}
    described["components"]["securitySchemes"] = {"API key": scheme}
    described["security"] = [{}, {"API key": []}]
    return described
