"""The HTTP application: all interfaces, the limits on requests, and the server's metrics."""

import asyncio
import itertools
import os
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import cache, partial
from http import HTTPStatus
from typing import Any, Literal

from fastapi import APIRouter, FastAPI, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.middleware.cors import CORSMiddleware
from fastapi.responses import JSONResponse, PlainTextResponse
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from starlette.exceptions import HTTPException as StarletteHTTPException
from starlette.routing import Match, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from nmt.errors import Mistake, TemplatedMessage, printable
from nmt.serving import api_page, lab, libretranslate, page
from nmt.serving.batcher import Batcher, QueueFull
from nmt.serving.gallery import Unavailable
from nmt.serving.origins import refusal
from nmt.serving.requests import DEFECT, GONE, NOT_JSON, NOT_UTF8, failures, sentence
from nmt.serving.server_messages import in_language, message_of, request_language
from nmt.serving.server_processes import METRICS_FOLDER
from nmt.serving.service import TOKEN_MESSAGES, Access, Limits, Service, ThisService, check_secret

_OfWorkers = Literal["livemax", "livesum"]

SECURITY_HEADERS = {
    "content-security-policy": "default-src 'self'; style-src 'self'; script-src 'self'; img-src 'self' data: blob:; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
}
"""The headers added to every response."""

router = APIRouter(tags=["monitoring"])


def application(service: Service) -> FastAPI:
    """The FastAPI application for a service. It starts and stops the service's batcher."""

    @asynccontextmanager
    async def running(app: FastAPI) -> AsyncIterator[None]:
        service.batcher.start()
        yield
        await service.batcher.stop()

    # A redirect to the path without its last slash would name this server's host, and lose a proxy's prefix.
    app = FastAPI(
        title="nmt-attention",
        openapi_url=None,  # api_page.py answers in two languages
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=running,
    )
    app.state.service, app.state.metrics = service, Metrics(service.batcher)
    for endpoints in ROUTERS:
        app.include_router(endpoints)
    # Computed when it is first asked for, and only once: it takes half as long as everything else here.
    app.openapi = cache(partial(api_page.description, app))  # type: ignore[method-assign]
    app.add_middleware(RequestMiddleware, metrics=app.state.metrics, limits=service.limits, access=service.access)
    if service.access.origins:
        origins = list(service.access.origins)
        app.add_middleware(CORSMiddleware, allow_origins=origins, allow_methods=["*"], allow_headers=["*"])
    for kind, handler in ERRORS.items():
        app.add_exception_handler(kind, handler)
    return app


@router.get("/health")
async def health() -> dict[str, str]:
    """Whether the server is running."""
    return {"status": "ok"}


@router.get("/ready", responses=failures(429, 503))
async def ready(service: ThisService) -> dict[str, Any]:
    """Whether the server can take another sentence now; a load balancer asks this.

    429 if the queue is full, and 503 if no run can be loaded. `broken` names the runs that cannot be loaded.
    `outdated` names those whose last request got an old version, because the changed folder cannot be loaded.
    """
    service.batcher.check_room(1)
    gallery = service.gallery
    if not gallery.usable:
        await _load_any(service)
    broken = sorted(gallery.broken)
    if not gallery.usable:
        raise HTTPException(
            503,
            TemplatedMessage(
                "None of the runs can be loaded now ({names}); see the server's log for the reasons.",
                names=", ".join(broken),
            ),
        )
    return {"status": "ready", "broken": broken, "outdated": sorted(gallery.outdated)}


async def _load_any(service: Service) -> None:
    """Loads the first run that can be loaded, in the model's thread.

    A load balancer sends no requests to a server that is not ready, so no request would load a repaired run.
    """
    for name in service.gallery.offered:
        with suppress(Unavailable):
            await service.batcher.compute(name, lambda _: None)
            return


@router.get("/metrics", response_class=PlainTextResponse, responses=failures(403))
async def prometheus(request: Request, service: ThisService) -> PlainTextResponse:
    """The server's metrics in Prometheus's text format."""
    if service.access.metrics_token is not None:
        check_secret(request, None, frozenset({service.access.metrics_token}), messages=TOKEN_MESSAGES)
    return PlainTextResponse(request.app.state.metrics.text(), media_type="text/plain; version=0.0.4")


ROUTERS = (libretranslate.router, libretranslate.deepl, lab.router, page.router, api_page.router, router)
"""All endpoints."""


def _error(request: Request, text: str, status: int, headers: Mapping[str, str] | None = None) -> Response:
    """An error response that clients of every interface understand; DeepL's clients read `message`."""
    text = in_language(text, request_language(request))
    body = {"error": text, "message": text} if request.url.path.startswith("/v2/") else {"error": text}
    return JSONResponse(body, status, headers)


async def _refused(request: Request, error: Any) -> Response:
    text, headers = error.detail, error.headers
    is_ours = isinstance(text, TemplatedMessage)  # not that of the router, or of a file that does not exist
    if error.status_code == HTTPStatus.NOT_FOUND and not is_ours:
        text = TemplatedMessage(
            "There is nothing at {path}; /docs lists the paths of this server.", path=printable(request.scope["path"])
        )
    elif error.status_code == HTTPStatus.METHOD_NOT_ALLOWED and not is_ours:
        allowed = _methods(request)
        text = TemplatedMessage(
            "{path} does not take {method}; use {allowed}.",
            path=printable(request.scope["path"]),
            method=printable(request.method),
            allowed=allowed,
        )
        headers = {"allow": allowed}
    elif not is_ours and isinstance(error.__cause__, UnicodeDecodeError):
        text = NOT_UTF8
    elif not is_ours and isinstance(error.__cause__, RecursionError):
        text = NOT_JSON  # brackets in thousands of brackets
    return _error(request, text, error.status_code, headers)


def _methods(request: Request) -> str:
    """The methods that the path of a request takes. The router names only those of the first endpoint."""
    methods = set[str]()
    # Not app.routes alone: some releases of FastAPI keep a whole router as one route.
    for route in itertools.chain(request.app.routes, *(endpoints.routes for endpoints in ROUTERS)):
        if isinstance(route, Route) and route.matches(request.scope)[0] != Match.NONE:
            methods |= route.methods or set()
    return ", ".join(sorted(methods | ({"HEAD"} if "GET" in methods else set())))


async def _invalid(request: Request, error: Any) -> Response:
    return _error(request, sentence(error.errors()), 400)


async def _mistaken(request: Request, error: Any) -> Response:
    return _error(request, message_of(error), 400)


async def _busy(request: Request, error: Any) -> Response:
    return _error(request, message_of(error), 429, {"retry-after": str(error.retry_after)})


async def _unavailable(request: Request, error: Any) -> Response:
    return _error(request, message_of(error), 503)


async def _failed(request: Request, error: Any) -> Response:
    # Starlette handles unexpected errors outside all middleware, so RequestMiddleware does not add the headers.
    return _error(request, DEFECT, 500, SECURITY_HEADERS)


ERRORS: dict[type[Exception], Callable[[Request, Any], Any]] = {
    StarletteHTTPException: _refused,
    RequestValidationError: _invalid,
    Mistake: _mistaken,
    QueueFull: _busy,
    Unavailable: _unavailable,
    Exception: _failed,
}
"""The handler for each type of exception."""


class Metrics:
    """The metrics served at /metrics.

    With several workers, prometheus_client keeps them in files of a folder, and any of the workers adds them up.
    """

    def __init__(self, batcher: Batcher) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter("nmt_requests", "Requests answered.", ["path", "status"], registry=self.registry)
        self.seconds = Histogram("nmt_request_seconds", "Duration of a request.", ["path"], registry=self.registry)
        self._folder = os.environ.get(METRICS_FOLDER)
        self._values: list[tuple[Gauge, Callable[[], float]]] = []
        gauges: dict[tuple[str, str, _OfWorkers], Callable[[], float]] = {
            (
                "nmt_queue_load",
                "Fraction of max_waiting that is in use; the largest of all workers.",
                "livemax",
            ): lambda: batcher.load,
            (
                "nmt_sentences_per_second",
                "Sentences translated per second, as a moving average over batches.",
                "livesum",
            ): lambda: batcher.sentences_per_second,
            ("nmt_models_loaded", "Models in memory.", "livesum"): lambda: batcher.gallery.number_loaded,
        }
        for (name, text, of_workers), value in gauges.items():
            gauge = Gauge(name, text, registry=self.registry, multiprocess_mode=of_workers)
            if self._folder is None:
                gauge.set_function(value)
            else:
                self._values.append((gauge, value))

    def record(self, path: str, status: int, seconds: float) -> None:
        """Counts a request."""
        self.seconds.labels(path).observe(seconds)
        self.requests.labels(path, str(status)).inc()
        self._write_values()

    def text(self) -> bytes:
        """The metrics of all workers in Prometheus's text format."""
        if self._folder is None:
            return generate_latest(self.registry)
        self._write_values()
        registry = CollectorRegistry()
        MultiProcessCollector(registry, self._folder)
        return generate_latest(registry)

    def _write_values(self) -> None:
        for gauge, value in self._values:
            gauge.set(value())


class RequestMiddleware:
    """ASGI middleware: refuses requests from other sites; limits the number of requests, the size of each request's
    body and the time it may take to arrive; answers HEAD as GET without the body; adds headers to the response, and
    records the request in the metrics.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics, limits: Limits, access: Access) -> None:
        self.app, self.metrics, self.limits, self.access = app, metrics, limits, access
        self.in_progress = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        received, arriving, status = 0, True, 500
        seconds, max_bytes = self.limits.seconds, self.limits.body_bytes
        deadline = asyncio.get_running_loop().time() + seconds
        head_only = scope["method"] == "HEAD"
        if head_only:
            scope = {**scope, "method": "GET"}  # a copy, because the server still has to know

        async def limited_receive() -> Message:
            nonlocal received, arriving
            if not arriving:  # the body is complete, so the caller now waits for the client to disconnect
                return await receive()
            try:
                async with asyncio.timeout_at(deadline):
                    message = await receive()
            except TimeoutError as error:
                raise HTTPException(
                    408, TemplatedMessage("The body took more than {seconds:g} s to arrive.", seconds=seconds)
                ) from error
            if message["type"] == "http.disconnect":
                raise HTTPException(GONE, "The client has disconnected.")
            received += len(message.get("body", b""))
            arriving = message.get("more_body", False)
            if received > max_bytes:
                raise HTTPException(
                    413,
                    TemplatedMessage(
                        "The body is larger than {most} bytes; send less text per request.", most=max_bytes
                    ),
                )
            return message

        async def observed_send(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                added = [(name.encode(), value.encode()) for name, value in SECURITY_HEADERS.items()]
                message = {**message, "headers": [*message["headers"], *added]}
            elif head_only:
                message = {**message, "body": b""}
            await send(message)

        began = time.perf_counter()
        # Health checks succeed however busy the server is.
        full = self.in_progress >= self.limits.requests and scope["path"] != "/health"
        request = Request(scope)
        refused = refusal(request.method, request.headers, self.access.hosts, self.access.origins)
        self.in_progress += 1
        try:
            if refused:
                await _error(request, refused, 403)(scope, receive, observed_send)
            elif full:
                await (await _busy(request, QueueFull(retry_after=1)))(scope, receive, observed_send)
            else:
                await self.app(scope, limited_receive, observed_send)
        finally:
            self.in_progress -= 1
            # Label with the route, not the path: clients can request any path, so there could be any number of labels.
            path = getattr(scope.get("route"), "path", "other")
            self.metrics.record(path, status, time.perf_counter() - began)
