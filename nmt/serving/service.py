"""What the endpoints share: the runs, the batcher, the limits, and the API key check."""

import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, HTTPException, Request

from nmt.errors import TemplatedMessage
from nmt.serving.batcher import Batcher
from nmt.serving.gallery import Gallery
from nmt.serving.languages import Languages


@dataclass(frozen=True)
class Limits:
    """The limits on one request."""

    characters: int
    sentences: int
    alternatives: int
    body_bytes: int
    seconds: float


@dataclass(frozen=True)
class Access:
    """Who may use the server."""

    keys: frozenset[str]
    """The accepted API keys; empty if no key is needed."""
    metrics_token: str | None
    """The bearer token for /metrics; None if no token is needed."""
    origins: Sequence[str]
    """The origins whose web pages may call the server from a browser."""


class Service:
    """The server as its endpoints see it."""

    def __init__(self, gallery: Gallery, batcher: Batcher, limits: Limits, access: Access) -> None:
        self.gallery, self.batcher, self.limits, self.access = gallery, batcher, limits, access
        self.languages = Languages(gallery)

    def check_key(self, request: Request, key: str | None = None) -> None:
        """Raises HTTPException 403 if the server has API keys and the request does not send one of them."""
        check_secret(request, key, self.access.keys)

    def check_characters(self, texts: Sequence[str]) -> None:
        """Raises HTTPException 400 if the texts together exceed the character limit of a request."""
        characters = sum(map(len, texts))
        if characters > self.limits.characters:
            raise HTTPException(
                400,
                TemplatedMessage(
                    "Invalid request: request ({number}) exceeds text limit ({most})",
                    number=characters,
                    most=self.limits.characters,
                ),
            )


def check_secret(request: Request, given: str | None, known: frozenset[str]) -> None:
    """Raises HTTPException 403 unless a known secret is in `given`, the query string or the Authorization header.

    If `known` is empty, every request passes.
    """
    header = request.headers.get("authorization", "").rpartition(" ")[2]
    secret = (given or request.query_params.get("api_key") or header).encode()
    if known and not any(hmac.compare_digest(secret, accepted.encode()) for accepted in known):
        missing = TemplatedMessage("Missing API key; send it as api_key")
        raise HTTPException(403, TemplatedMessage("Invalid API key") if secret else missing)


async def _service(request: Request) -> Service:  # FastAPI would call a plain function in a separate thread
    service: Service = request.app.state.service
    return service


ThisService = Annotated[Service, Depends(_service)]
"""The type of an endpoint's parameter for which FastAPI passes the application's Service."""
