"""The HTTP application: every interface, the limits around them, and what a monitor asks for."""

import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from fastapi import FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.middleware.cors import CORSMiddleware
from fastapi.responses import JSONResponse, PlainTextResponse
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.exceptions import HTTPException as StarletteHTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from nmt.serving import lab, libretranslate, page
from nmt.serving.engine import Engine, Full
from nmt.serving.gallery import Gallery
from nmt.serving.libretranslate import Interface
from nmt.serving.requests import Limits, check_key, sentence

SECURITY = {
    "content-security-policy": "default-src 'self'; style-src 'self'; script-src 'self'; img-src 'self' data: blob:; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
}


@dataclass(frozen=True)
class Access:
    """Who may use the server."""

    keys: frozenset[str]
    """API keys; empty if none is needed."""
    metrics_token: str | None
    """What /metrics needs as a bearer token; None if nothing."""
    origins: Sequence[str]
    """Pages of these origins may ask from a browser."""


def application(gallery: Gallery, engine: Engine, limits: Limits, access: Access) -> FastAPI:
    """The application; its engine starts and stops with it."""

    @asynccontextmanager
    async def running(app: FastAPI) -> AsyncIterator[None]:
        engine.start()
        yield
        await engine.stop()

    # FastAPI's own documentation pages load scripts from another server.
    app = FastAPI(
        title="nmt-attention",
        summary="Translation and attention of trained runs",
        docs_url=None,
        redoc_url=None,
        lifespan=running,
        responses={},
    )
    interface = Interface(gallery, engine, limits, access.keys)
    app.include_router(libretranslate.routes(interface))
    app.include_router(lab.routes(interface))
    app.include_router(page.routes())
    registry = CollectorRegistry()
    metrics = Metrics(registry, engine)
    app.add_middleware(Around, metrics=metrics, body_bytes=limits.body_bytes)
    if access.origins:
        app.add_middleware(CORSMiddleware, allow_origins=list(access.origins), allow_methods=["*"], allow_headers=["*"])

    @app.exception_handler(StarletteHTTPException)
    async def refused(request: Request, error: StarletteHTTPException) -> JSONResponse:
        return JSONResponse({"error": str(error.detail)}, error.status_code, error.headers)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        return JSONResponse({"error": sentence(error.errors())}, 400)

    @app.exception_handler(ValueError)
    async def mistaken(request: Request, error: ValueError) -> JSONResponse:
        return JSONResponse({"error": str(error)}, 400)

    @app.exception_handler(Exception)
    async def failed(request: Request, error: Exception) -> JSONResponse:
        return JSONResponse({"error": "Internal error; the server's log has the details."}, 500)

    @app.exception_handler(Full)
    async def busy(request: Request, error: Full) -> JSONResponse:
        return JSONResponse({"error": str(error)}, 429, {"retry-after": str(error.retry_after)})

    @app.get("/health")
    async def health() -> dict[str, str]:
        """Whether the server is running."""
        return {"status": "ok"}

    @app.get("/metrics", response_class=PlainTextResponse)
    async def prometheus(request: Request) -> PlainTextResponse:
        """Counts and times, for Prometheus."""
        if access.metrics_token is not None:
            check_key(request, None, frozenset({access.metrics_token}))
        return PlainTextResponse(generate_latest(registry), media_type="text/plain; version=0.0.4")

    return app


class Metrics:
    """What /metrics counts."""

    def __init__(self, registry: CollectorRegistry, engine: Engine) -> None:
        self.requests = Counter("nmt_requests", "Requests answered.", ["path", "status"], registry=registry)
        self.seconds = Histogram("nmt_request_seconds", "Seconds until the answer.", ["path"], registry=registry)
        Gauge("nmt_queue_load", "Share of the queue that is taken.", registry=registry).set_function(
            lambda: engine.load
        )
        Gauge("nmt_sentences_per_second", "Speed of the last batches.", registry=registry).set_function(
            lambda: engine.sentences_per_second
        )
        Gauge("nmt_models_loaded", "Models in memory.", registry=registry).set_function(
            lambda: engine.gallery.number_loaded
        )


class Around:
    """Around every request: the limit of its body, the headers of its answer, and its count."""

    def __init__(self, app: ASGIApp, metrics: Metrics, body_bytes: int) -> None:
        self.app, self.metrics, self.body_bytes = app, metrics, body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        read, status = 0, 500

        async def limited() -> Message:
            nonlocal read
            message = await receive()
            read += len(message.get("body", b""))
            if read > self.body_bytes:
                raise HTTPException(413, f"The body has more than {self.body_bytes} bytes; send less at once.")
            return message

        async def answered(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                own = [(name.encode(), value.encode()) for name, value in SECURITY.items()]
                message = {**message, "headers": [*message["headers"], *own]}
            await send(message)

        began = time.perf_counter()
        try:
            await self.app(scope, limited, answered)
        finally:
            self.metrics.seconds.labels(_route(scope)).observe(time.perf_counter() - began)
            self.metrics.requests.labels(_route(scope), str(status)).inc()


def _route(scope: Any) -> str:
    """The path without what a client can choose, so that there are few labels."""
    route = scope.get("route")
    return getattr(route, "path", "other")
