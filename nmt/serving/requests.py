"""How a request is read, how long it may take, and what its errors look like."""

import asyncio
import itertools
import json
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from fastapi import HTTPException, Request
from pydantic import BaseModel, Field, ValidationError
from python_multipart.multipart import parse_options_header

from nmt.errors import TemplatedMessage
from nmt.serving.server_messages import WHOLE_BODY, FieldProblem

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)

GONE = 499
"""The status of a request whose client has disconnected. Nobody receives it, but /metrics counts it."""


class Body(BaseModel):
    """The fields of a request. Unknown fields are ignored, because clients written for other servers may send them."""


class Failure(BaseModel):
    """The body of every error."""

    error: str = Field(description="a sentence")
    message: str | None = Field(None, description="the same sentence; only in DeepL's interface")


DEFECT = TemplatedMessage("Internal error; the server's log has the details.")
"""The error message for a request that fails because of a bug in the server."""

NOT_JSON = TemplatedMessage("Invalid request: the body is not JSON; send JSON.")
NOT_UTF8 = TemplatedMessage("Invalid request: the text is not UTF-8; send UTF-8.")
_NO_OBJECT = TemplatedMessage("Invalid request: the body must be a JSON object.")
_MOST_FIELDS = 10_000
"""Maximum number of fields in a form."""

_WAIT = {"description": "seconds to wait before the next attempt", "schema": {"type": "integer"}}
STATUSES: dict[int, dict[str, Any]] = {
    400: {"description": "The request is not valid; `error` says why."},
    403: {"description": "The API key is missing or unknown, or the host or the page's site is not allowed."},
    404: {"description": "There is no such run, or nothing at this path."},
    408: {"description": "The body took too long to arrive."},
    413: {"description": "The body is larger than the server allows."},
    429: {"description": "Too many sentences are waiting.", "headers": {"Retry-After": _WAIT}},
    500: {"description": "Internal error; the server's log has the details."},
    503: {"description": "The run cannot be loaded, or its directory was removed."},
    504: {"description": "The request took longer than the server allows."},
}
"""The meaning of each error status."""

_USUAL = (400, 403, 408, 413, 429, 500, 503, 504)


def failures(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The API description of an endpoint's errors; by default, the errors of the translation endpoints."""
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/Failure"}}}
    return {status: {"content": content, **STATUSES[status]} for status in sorted(statuses or _USUAL)}


def takes(model: type[BaseModel]) -> dict[str, Any]:
    """The API description of a body that may be JSON or a form."""
    schema = model.model_json_schema()
    kinds = ("application/json", "application/x-www-form-urlencoded")
    return {"requestBody": {"required": True, "content": {kind: {"schema": schema} for kind in kinds}}}


async def read(request: Request, model: type[M]) -> M:
    """Reads a request's fields from a JSON body, or else from a form and the query string, as LibreTranslate does.

    A field that is given several times becomes a list. Raises HTTPException 400 for invalid JSON or an invalid field.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    body = await request.body() if kind in ("", "application/json") else b""
    if kind == "application/json" or body:
        try:
            fields = json.loads(_decoded(body))
        except (ValueError, RecursionError) as error:
            raise HTTPException(
                400, TemplatedMessage("Invalid request: the body is not JSON; send JSON or a form.")
            ) from error
        try:
            json.dumps(fields, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            raise HTTPException(
                400, TemplatedMessage("Invalid request: a text contains an unpaired surrogate; send valid Unicode.")
            ) from error
        if not isinstance(fields, dict):
            raise HTTPException(400, _NO_OBJECT)
    else:
        if kind == "application/x-www-form-urlencoded":
            # Starlette would read bytes that are not percent-encoded, as curl -d sends them, as Latin-1.
            data = await request.body()
            if data.lstrip()[:1] in (b"{", b"["):  # what curl -d sends without a header
                raise HTTPException(
                    400,
                    TemplatedMessage(
                        "Invalid request: the body looks like JSON, but is declared a form; send the header "
                        "Content-Type: application/json."
                    ),
                )
            form: Any = _parsed(data)
        else:
            if kind == "multipart/form-data":
                # Starlette would decode the fields with whatever codec of Python the header names.
                _, options = parse_options_header(request.headers["content-type"])
                if options.get(b"charset", b"utf-8").lower() not in (b"utf-8", b"utf8"):
                    raise HTTPException(400, NOT_UTF8)
            async with request.form() as uploaded:  # empty unless the content type is one for forms
                form = uploaded.multi_items()
        lists: dict[str, list[str]] = {}
        for key, value in (*_parsed(request.scope["query_string"]), *form):
            if isinstance(value, str):  # not an uploaded file
                lists.setdefault(key, []).append(value)
        fields = {key: values if len(values) > 1 else values[0] for key, values in lists.items()}
    try:
        return model.model_validate(fields)
    except ValidationError as error:
        raise HTTPException(400, sentence(error.errors())) from error


def _decoded(data: bytes) -> str:
    """Raises HTTPException 400 if the data is not UTF-8. JSON's own reader would accept UTF-16 and UTF-32 too."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise HTTPException(400, NOT_UTF8) from error


def _parsed(form: bytes) -> list[tuple[str, str]]:
    """The fields of a form or a query string. Raises HTTPException 400 if it is not UTF-8 or has too many fields."""
    try:
        return parse_qsl(_decoded(form), keep_blank_values=True, errors="strict", max_num_fields=_MOST_FIELDS)
    except UnicodeDecodeError as error:
        raise HTTPException(400, NOT_UTF8) from error
    except ValueError as error:
        raise HTTPException(
            400,
            TemplatedMessage("Invalid request: the form has more than {most} fields; send fewer.", most=_MOST_FIELDS),
        ) from error


def sentence(errors: Sequence[Any]) -> str:
    """A sentence about the first error that pydantic or FastAPI found."""
    first = errors[0]
    if first["type"] == "json_invalid":
        return NOT_JSON
    if tuple(first["loc"]) == ("body",):
        if first["type"] == "missing":
            return TemplatedMessage("Invalid request: the body is empty; send JSON.")
        if isinstance(first["input"], bytes):  # FastAPI reads as JSON only what is declared as JSON
            return TemplatedMessage(
                "Invalid request: the body is not declared as JSON; send JSON with the header Content-Type: "
                "application/json."
            )
        if first["type"] == "model_attributes_type":
            return _NO_OBJECT
    location = [str(part) for part in first["loc"] if part != "body"]
    # Where a field may have several types, pydantic appends the type, such as 'str' or 'list[str]'.
    fields = itertools.takewhile(lambda part: (part.isidentifier() and part != "str") or part.isdigit(), location)
    field = ".".join(fields) or WHOLE_BODY
    if first["type"] == "missing":
        return TemplatedMessage("Invalid request: missing {field} parameter", field=field)
    return TemplatedMessage("Invalid request: {field}: {problem}", field=field, problem=FieldProblem(first))


async def within(request: Request, seconds: float, work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`, which is canceled if the client disconnects or the time is up.

    Raises HTTPException 499 in the first case and 504 in the second, or what reading the body raises.
    """
    task, gone = asyncio.ensure_future(work), asyncio.ensure_future(_gone(request))
    try:
        finished, _ = await asyncio.wait({task, gone}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if task in finished:
            return task.result()
        if finished:
            gone.result()  # raises what reading the body raised, such as 413
            raise HTTPException(GONE, "The client has disconnected.")
        raise HTTPException(504, too_slow(seconds))
    finally:
        task.cancel()
        gone.cancel()


def too_slow(seconds: float) -> str:
    """The error message for a request that has exceeded the time limit."""
    return TemplatedMessage("The request took more than {seconds:g} s; send less text per request.", seconds=seconds)


async def _gone(request: Request) -> None:
    """Returns when the client has closed the connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
