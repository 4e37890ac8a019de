"""What goes wrong around a server: folders that change, bodies that do not arrive, limits of the operating system."""

import asyncio
import json
import logging
import shutil
import socket
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from served_runs import Serve

from nmt.errors import Mistake
from nmt.serving import gallery as galleries
from nmt.serving import streams
from nmt.serving.application import application
from nmt.serving.batcher import Batcher
from nmt.serving.gallery import Gallery, Unavailable
from nmt.serving.service import Access, Limits, Service

LIMITS = Limits(characters=200, sentences=10, alternatives=3, body_bytes=5000, seconds=60.0, requests=100)
ASKED = {"q": "one two.", "source": "en", "target": "vi"}


@pytest.fixture
def changed(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Gallery, Path]:
    """A gallery of a run whose folder may be changed; every request tries to load it anew."""
    monkeypatch.setattr(galleries, "_SECONDS_TO_RETRY", 0.0)
    run = shutil.copytree(folder / "maps_luong", tmp_path / "run")
    return Gallery([run], "cpu", "float32", 2), run


def test_a_loaded_run_is_served_while_its_folder_is_damaged_or_gone(
    changed: tuple[Gallery, Path], caplog: pytest.LogCaptureFixture
) -> None:
    gallery, run = changed
    first = gallery.load("run")
    weights, metrics = (run / "model.safetensors").read_bytes(), (run / "metrics.json").read_text()
    (run / "model.safetensors").write_bytes(weights[:100])
    (run / "metrics.json").write_text(metrics + "\n")
    with caplog.at_level(logging.WARNING, "nmt"):
        assert gallery.load("run") is first
    assert "run cannot be loaded; its old version is served: " in caplog.text
    assert (gallery.outdated, gallery.broken) == ({"run"}, set())
    (run / "model.safetensors").write_bytes(weights)
    second = gallery.load("run")
    assert second is not first
    assert gallery.outdated == set()
    shutil.rmtree(run)
    assert gallery.load("run") is second
    assert gallery.outdated == {"run"}


def test_a_changed_dictionary_is_read_at_the_next_request(changed: tuple[Gallery, Path]) -> None:
    gallery, run = changed
    assert gallery.load("run").source_text("six") == "six"
    (run / "dictionary.tsv").write_text("six\tone two\n", encoding="utf-8")
    assert gallery.load("run").source_text("six") == "one two"
    (run / "dictionary.tsv").write_text("six\n", encoding="utf-8")
    assert gallery.load("run").source_text("six") == "one two"
    assert gallery.outdated == {"run"}


def test_a_run_that_is_dropped_from_memory_is_no_longer_outdated(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(galleries, "_SECONDS_TO_RETRY", 0.0)
    damaged, _ = (shutil.copytree(folder / "maps_luong", tmp_path / name) for name in ("a", "b"))
    gallery = Gallery([tmp_path], "cpu", "float32", max_models=1)
    gallery.load("a")
    (damaged / "model.safetensors").write_bytes(b"")
    gallery.load("a")
    assert gallery.outdated == {"a"}
    gallery.load("b")
    assert gallery.outdated == set()


def test_a_run_that_cannot_be_loaded_is_unavailable_until_it_can(changed: tuple[Gallery, Path]) -> None:
    gallery, run = changed
    away = run.rename(run.with_name("away"))
    service = Service(gallery, Batcher(gallery, 400, 0.0, 100), LIMITS, Access(frozenset(), None, ()))
    with TestClient(application(service), base_url="http://localhost") as client:
        answers = [client.post("/translate", json=ASKED), client.post("/v1/attend", json={"text": "one"})]
        for answer in answers:
            text = "The run run cannot be loaded now; see the server's log for the reason."
            assert (answer.status_code, answer.json()) == (503, {"error": text})
        assert text in client.post("/v1/translate/stream", json={"text": "one"}).text
        away.rename(run)
        assert client.post("/translate", json=ASKED).status_code == 200


def test_the_lab_translates_although_the_list_of_words_is_damaged(changed: tuple[Gallery, Path]) -> None:
    gallery, run = changed
    (run / "source_words.txt").write_bytes(b"\xff")
    service = Service(gallery, Batcher(gallery, 400, 0.0, 100), LIMITS, Access(frozenset(), None, ()))
    with TestClient(application(service), base_url="http://localhost") as client:
        answer = client.post("/v1/translate/stream", json={"text": "one parliament"})
    assert '"unknown_words":[]' in answer.text.replace(" ", "")


def test_a_run_that_failed_is_tried_again_after_some_seconds(
    changed: tuple[Gallery, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    gallery, run = changed
    now = 1000.0
    monkeypatch.setattr(galleries, "_SECONDS_TO_RETRY", 2.0)
    monkeypatch.setattr(galleries.time, "monotonic", lambda: now)
    away = run.rename(run.with_name("away"))
    with pytest.raises(Unavailable):
        gallery.load("run")
    away.rename(run)
    with pytest.raises(Unavailable):
        gallery.load("run")
    now += 1.9
    with pytest.raises(Unavailable):
        gallery.load("run")
    now += 0.1
    gallery.load("run")


def test_a_missing_run_is_reported_at_the_start(changed: tuple[Gallery, Path]) -> None:
    gallery, run = changed
    shutil.rmtree(run)
    with pytest.raises(Mistake, match="There is no folder"):
        gallery.preload()


@pytest.mark.parametrize("path", ["/translate", "/v1/attend"])
def test_a_body_that_does_not_arrive_is_given_up(gallery: Gallery, path: str) -> None:
    limits = replace(LIMITS, seconds=0.1)
    app = application(Service(gallery, Batcher(gallery, 400, 0.0, 100), limits, Access(frozenset(), None, ())))
    sent: list[dict[str, Any]] = []
    parts = [{"type": "http.request", "body": b"{", "more_body": True}]

    async def receive() -> dict[str, Any]:
        if parts:
            return parts.pop()
        await asyncio.sleep(60)
        raise AssertionError("nobody waits that long")

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    scope = {
        **{"type": "http", "method": "POST", "path": path, "raw_path": path.encode(), "query_string": b""},
        **{"headers": [(b"content-type", b"application/json")], "http_version": "1.1", "scheme": "http"},
    }
    asyncio.run(app(scope, receive, send))
    assert sent[0]["status"] == 408
    assert json.loads(sent[1]["body"]) == {"error": "The body took more than 0.1 s to arrive."}


def test_no_more_requests_than_allowed_are_in_progress(serve: Serve) -> None:
    """Health checks succeed nevertheless."""
    client = serve(replace(LIMITS, requests=0))
    answer = client.get("/languages")
    assert (answer.status_code, answer.json()) == (429, {"error": "The server is busy; try again in 1 s."})
    assert answer.headers["retry-after"] == "1"
    assert client.get("/health").status_code == 200


def test_a_server_that_cannot_take_another_sentence_is_not_ready(client: TestClient) -> None:
    """It is running nevertheless."""
    service = client.app.state.service
    ready = client.get("/ready")
    assert (ready.status_code, ready.json()) == (200, {"status": "ready", "broken": [], "outdated": []})
    service.batcher._computing = service.batcher.max_waiting
    full = client.get("/ready")
    assert (full.status_code, full.json()["error"].startswith("The server is busy; try again in")) == (429, True)
    assert int(full.headers["retry-after"]) >= 1
    service.batcher._computing = 0
    assert client.get("/ready").status_code == 200


def test_a_server_is_ready_while_one_of_its_runs_can_be_loaded(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It tries again by itself, because a load balancer sends no requests to a server that is not ready."""
    monkeypatch.setattr(galleries, "_SECONDS_TO_RETRY", 0.0)
    weights = [shutil.copytree(folder / "maps_luong", tmp_path / name) / "model.safetensors" for name in "abc"]
    intact = weights[0].read_bytes()
    (tmp_path / "c" / "metrics.json").write_text("", encoding="utf-8")  # unreadable from the start
    gallery = Gallery([tmp_path], "cpu", "float32", max_models=1)
    service = Service(gallery, Batcher(gallery, 400, 0.0, 100), LIMITS, Access(frozenset(), None, ()))
    with TestClient(application(service), base_url="http://localhost") as client:

        def ready() -> tuple[int, Any]:
            answer = client.get("/ready")
            return answer.status_code, answer.json()

        def requested(run: str) -> int:
            return client.post("/v1/attend", json={"text": "one", "run": run}).status_code

        assert ready() == (200, {"status": "ready", "broken": ["c"], "outdated": []})
        weights[0].write_bytes(intact[:100])
        assert requested("a") == 503
        assert ready() == (200, {"status": "ready", "broken": ["a", "c"], "outdated": []})
        weights[1].write_bytes(intact[:100])
        assert requested("b") == 503
        error = "None of the runs can be loaded now (a, b, c); see the server's log for the reasons."
        assert ready() == (503, {"error": error})
        assert client.get("/health").status_code == 200
        weights[1].write_bytes(intact)
        assert ready() == (200, {"status": "ready", "broken": ["a", "c"], "outdated": []}), (
            "nobody has requested the run"
        )
        weights[0].write_bytes(intact)
        assert requested("a") == 200
        assert ready() == (200, {"status": "ready", "broken": ["c"], "outdated": []})


def test_a_stream_that_is_read_too_slowly_ends_its_search(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "_UNREAD_STREAMS", -1)
    events = client.post("/v1/translate/stream", json={"text": "one two."}).text
    sentence = "The stream is read too slowly; read it faster, or use the request without /stream."
    error = {"error": sentence, "status": 408}
    assert events == f"event: error\ndata: {json.dumps(error)}\n\n"
    assert client.app.state.service.streams == 0


def test_a_long_prefix_is_refused(client: TestClient) -> None:
    """Every piece of it is a step of the search, for all sentences of its batch."""
    answer = client.post("/v1/translate", json={"text": "one", "prefix": "0" * 1001})
    text = "Invalid request: prefix: String should have at most 1000 characters"
    assert (answer.status_code, answer.json()) == (400, {"error": text})


def test_idle_connections_do_not_hold_up_a_request(address: str, client: TestClient) -> None:
    host, port = address.removeprefix("http://").split(":")
    idle = [socket.create_connection((host, int(port))) for _ in range(100)]
    try:
        with socket.create_connection((host, int(port)), timeout=20) as one:
            one.sendall(b"GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
            assert one.makefile("rb").readline() == b"HTTP/1.1 200 OK\r\n"
    finally:
        for each in idle:
            each.close()


def test_a_request_needs_no_further_thread(client: TestClient) -> None:
    """A thread for each request would compete with the model's for the interpreter."""
    for path, body in (("/translate", ASKED), ("/v1/translate", {"text": "one"})):
        assert client.post(path, json=body).status_code == 200
    assert [each.name for each in threading.enumerate() if each.name.startswith("AnyIO worker")] == []
