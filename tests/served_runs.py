"""Fixtures: a server of the tiny runs, called in this process."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from fastapi.testclient import TestClient

from nmt.serving.application import application
from nmt.serving.batcher import Batcher
from nmt.serving.gallery import Gallery
from nmt.serving.service import Access, Limits, Service

LIMITS = Limits(characters=200, sentences=10, alternatives=3, body_bytes=5000, seconds=60.0, requests=100)
Serve = Callable[..., TestClient]


@pytest.fixture(scope="module")
def gallery(folder: Path) -> Gallery:
    """The runs maps_luong and maps_transformer; one of them fits into memory."""
    return Gallery([folder / "maps_luong", folder / "maps_transformer"], "cpu", "float32", max_models=1)


@pytest.fixture
def serve(gallery: Gallery) -> Iterator[Serve]:
    """Starts a server, with changed limits or access."""
    clients: list[TestClient] = []

    def start(
        limits: Limits = LIMITS,
        keys: frozenset[str] = frozenset(),
        metrics_token: str | None = None,
        origins: tuple[str, ...] = (),
        max_waiting: int = 100,
    ) -> TestClient:
        batcher = Batcher(gallery, batch_tokens=400, batch_window=0.0, max_waiting=max_waiting)
        access = Access(keys, metrics_token, origins)
        client = TestClient(
            application(Service(gallery, batcher, limits, access)),
            raise_server_exceptions=False,
            base_url="http://localhost",
        )
        clients.append(client.__enter__())
        return client

    yield start
    for client in clients:
        client.__exit__(None, None, None)


@pytest.fixture
def client(serve: Serve) -> TestClient:
    """A server as it is by default."""
    return serve()


def cached(app: Any) -> Any:
    """The application, whose page's files a browser keeps without asking again whether they have changed.

    Every test opens the page: it would load these forty files, and compile them, again and again.
    """

    async def serve_cached(scope: Any, receive: Any, send: Any) -> None:
        async def send_cached(message: Any) -> None:
            if message["type"] == "http.response.start" and scope["path"].startswith("/page/"):
                kept = [(name, value) for name, value in message["headers"] if name != b"cache-control"]
                message = {**message, "headers": [*kept, (b"cache-control", b"max-age=86400")]}
            await send(message)

        await app(scope, receive, send_cached)

    return serve_cached


@pytest.fixture(scope="module")
def address(gallery: Gallery) -> Iterator[str]:
    """The address of a server in a thread, for clients that need a real connection."""
    limits = replace(LIMITS, characters=1000, body_bytes=100_000)
    batcher = Batcher(gallery, batch_tokens=400, batch_window=0.0, max_waiting=100)
    app = application(Service(gallery, batcher, limits, Access(frozenset(), None, ())))
    server = uvicorn.Server(uvicorn.Config(cached(app), port=0, log_config=None, timeout_graceful_shutdown=5))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        thread.join(0.05)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join()
