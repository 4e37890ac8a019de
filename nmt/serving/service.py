"""What the endpoints share: the runs, the batcher, the limits, and the API key check."""

import hmac
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Annotated, NamedTuple

from fastapi import Depends, HTTPException, Request

from nmt.errors import TemplatedMessage
from nmt.serving.batcher import Batcher
from nmt.serving.gallery import Gallery
from nmt.serving.languages import Languages


@dataclass(frozen=True)
class Limits:
    """The limits on requests."""

    characters: int
    """In all texts of a request."""
    sentences: int
    alternatives: int
    """Per text, beside the best translation."""
    body_bytes: int
    seconds: float
    """To receive the body, and as long again to answer."""
    requests: int
    """How many requests may be in progress."""


@dataclass(frozen=True)
class Access:
    """Who may use the server."""

    keys: frozenset[str]
    """The accepted API keys; empty if no key is needed."""
    metrics_token: str | None
    """The bearer token for /metrics; None if no token is needed."""
    origins: Sequence[str]
    """The origins whose web pages may call the server from a browser."""
    hosts: Collection[str] = ()
    """The names of the server besides IP addresses and localhost, in lower case; '*' allows any."""


class Service:
    """The server as its endpoints see it."""

    def __init__(self, gallery: Gallery, batcher: Batcher, limits: Limits, access: Access) -> None:
        self.gallery, self.batcher, self.limits, self.access = gallery, batcher, limits, access
        self.languages = Languages(gallery)
        self.streams = 0
        """Number of searches and attributions being streamed."""

    def check_key(self, request: Request, key: str | None = None) -> None:
        """Raises HTTPException 403 if the server has API keys and the request does not send one of them."""
        check_secret(request, key, self.access.keys)

    def check_texts(self, texts: Sequence[str]) -> None:
        """Raises HTTPException 400 if there are more texts or characters than a request may have."""
        # Empty texts have no characters and no sentences, but take their time too.
        if len(texts) > self.limits.sentences:
            raise HTTPException(
                400,
                TemplatedMessage(
                    "Invalid request: {number} texts exceed the limit of {most}; send several requests",
                    number=len(texts),
                    most=self.limits.sentences,
                ),
            )
        characters = sum(map(len, texts))
        if characters > self.limits.characters:
            raise HTTPException(
                400,
                TemplatedMessage(
                    "Invalid request: request ({number} characters) exceeds text limit ({most} characters)",
                    number=characters,
                    most=self.limits.characters,
                ),
            )


class SecretMessages(NamedTuple):
    """The messages for a missing and for an unknown secret."""

    missing: TemplatedMessage
    unknown: TemplatedMessage


KEY_MESSAGES = SecretMessages(
    TemplatedMessage("Missing API key; send it as api_key"), TemplatedMessage("Invalid API key")
)
TOKEN_MESSAGES = SecretMessages(
    TemplatedMessage("Missing token; send it as Authorization: Bearer TOKEN"), TemplatedMessage("Invalid token")
)


def check_secret(
    request: Request, given: str | None, known: frozenset[str], messages: SecretMessages = KEY_MESSAGES
) -> None:
    """Raises HTTPException 403 unless a known secret is in `given`, the query string or the Authorization header.

    If `known` is empty, every request passes.
    """
    header = request.headers.get("authorization", "").rpartition(" ")[2]
    # Starlette decodes headers as Latin-1, whatever the client meant.
    secret = (given or request.query_params.get("api_key") or "").encode() or header.encode("latin-1")
    if known and not any(hmac.compare_digest(secret, accepted.encode()) for accepted in known):
        raise HTTPException(403, messages.unknown if secret else messages.missing)


async def _service(request: Request) -> Service:  # FastAPI would call a plain function in a separate thread
    service: Service = request.app.state.service
    return service


ThisService = Annotated[Service, Depends(_service)]
"""The type of an endpoint's parameter for which FastAPI passes the application's Service."""
