"""What every interface shares: how a request is read, who may ask, how long it may take, and what errors look like."""

import asyncio
import hmac
import itertools
import json
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from fastapi import HTTPException, Request
from pydantic import BaseModel, ConfigDict, ValidationError

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)

GONE = 499
"""The status of a request whose client has left; nobody reads it, but the log shows it."""


class Body(BaseModel):
    """The fields of a request; unknown ones are ignored, because clients of other servers send some."""

    model_config = ConfigDict(extra="ignore", str_max_length=1_000_000)


class Failure(BaseModel):
    """Every error: what is wrong, and what to change."""

    error: str


@dataclass(frozen=True)
class Limits:
    """What one request may ask for."""

    characters: int
    sentences: int
    alternatives: int
    body_bytes: int
    seconds: float


def failures(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The errors of an endpoint, for the description of the interface."""
    return {status: {"model": Failure} for status in (400, 403, 413, 429, 504, *statuses)}


def takes(model: type[BaseModel]) -> dict[str, Any]:
    """The description of a body that may be JSON or a form."""
    schema = model.model_json_schema()
    kinds = ("application/json", "application/x-www-form-urlencoded")
    return {"requestBody": {"required": True, "content": {kind: {"schema": schema} for kind in kinds}}}


async def read(request: Request, model: type[M]) -> M:
    """The body of a request, JSON or form. Raises HTTPException 400 if it cannot be used."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() in ("", "application/json"):
        try:
            fields = json.loads(await request.body())
        except (ValueError, RecursionError) as error:
            raise HTTPException(400, "Invalid request: the body is not JSON.") from error
        if not isinstance(fields, dict):
            raise HTTPException(400, "Invalid request: the body must be a JSON object.")
    else:
        fields = {key: value for key, value in (await request.form()).items() if isinstance(value, str)}
    try:
        return model.model_validate(fields)
    except ValidationError as error:
        raise HTTPException(400, sentence(error.errors())) from error


def sentence(errors: Sequence[Any]) -> str:
    """One sentence on the first mistake that pydantic found."""
    first = errors[0]
    # A union adds the names of its types, such as 'list[str]'.
    parts = [str(part) for part in first["loc"] if part != "body"]
    place = ".".join(itertools.takewhile(lambda part: part.isidentifier() or part.isdigit(), parts)) or "the body"
    if first["type"] == "missing":
        return f"Invalid request: missing {place} parameter"
    return f"Invalid request: {place}: {first['msg']}"


def check_key(request: Request, key: str | None, known: frozenset[str]) -> None:
    """Raises HTTPException 403 unless a known key came in the body, the query or the Authorization header."""
    if not known:
        return
    header = request.headers.get("authorization", "").rpartition(" ")[2]
    given = (key or request.query_params.get("api_key") or header).encode()
    if not any(hmac.compare_digest(given, each.encode()) for each in known):
        raise HTTPException(403, "Invalid API key" if given else "Please give an API key (api_key)")


async def within(request: Request, seconds: float, work: Coroutine[Any, Any, T]) -> T:
    """The result of some work, which is cancelled when the client leaves or the time is over.

    Raises HTTPException 499 or 504 then.
    """
    task, gone = asyncio.ensure_future(work), asyncio.ensure_future(_gone(request))
    try:
        done, _ = await asyncio.wait({task, gone}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if task in done:
            return task.result()
        if done:
            raise HTTPException(GONE, "The client has left.")
        raise HTTPException(504, f"The request took more than {seconds:g} s; ask for less text at once.")
    finally:
        task.cancel()
        gone.cancel()


async def _gone(request: Request) -> None:
    """Returns when the client has closed the connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
