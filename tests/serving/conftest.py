"""A server of the tiny runs, called in this process."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from nmt.serving.application import application
from nmt.serving.engine import Engine
from nmt.serving.gallery import Gallery
from nmt.serving.service import Access, Limits, Service

LIMITS = Limits(characters=200, sentences=10, alternatives=3, body_bytes=5000, seconds=60.0)
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
        engine = Engine(gallery, batch_tokens=400, batch_window=0.0, max_waiting=max_waiting)
        access = Access(keys, metrics_token, origins)
        client = TestClient(application(Service(gallery, engine, limits, access)), raise_server_exceptions=False)
        clients.append(client.__enter__())
        return client

    yield start
    for client in clients:
        client.__exit__(None, None, None)


@pytest.fixture
def client(serve: Serve) -> TestClient:
    """A server as it is by default."""
    return serve()
