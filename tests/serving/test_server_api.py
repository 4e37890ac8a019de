"""Every row of docs/reference/server_api.md is sent, and status and answer are as the table says; so are the rows of
more_requests.txt, which has other forms of the same requests.
"""

import json
import re
import shutil
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from nmt.serving.application import SECURITY_HEADERS, application
from nmt.serving.batcher import Batcher
from nmt.serving.gallery import Gallery, Unavailable
from nmt.serving.requests import STATUSES
from nmt.serving.service import Access, Limits, Service

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "server_api.md"
MORE = Path(__file__).with_name("more_requests.txt")
ROWS = [
    (cells[0].strip(), cells[1].strip() if len(cells) == 4 else "", cells[-2].strip(), cells[-1].strip())
    for file in (PAGE, MORE)
    for line in file.read_text(encoding="utf-8").replace("| |", "|  |").splitlines()
    if re.search(r"\| \d{3} \|", line)
    for cells in [line.strip("| ").split(" | ")]
]
"""Request, server (which the page does not have), status and answer of each row."""
NOT_SENT = [row for row in ROWS if "`" not in row[0]]
SENT = [row for row in ROWS if row not in NOT_SENT]
LIMITS = Limits(characters=5000, sentences=200, alternatives=4, body_bytes=1_000_000, seconds=60.0, requests=100)
FIELDS = {
    "max_characters": "characters",
    "max_sentences": "sentences",
    "max_alternatives": "alternatives",
    "max_body_bytes": "body_bytes",
    "time_limit": "seconds",
}


@pytest.fixture(scope="module")
def one_run(folder: Path) -> Gallery:
    return Gallery([folder / "maps_luong"], "cpu", "float32", max_models=1)


@pytest.fixture
def server(request: pytest.FixtureRequest, one_run: Gallery, folder: Path, tmp_path: Path) -> Iterator[TestClient]:
    """The server that the second cell of a row describes."""
    what = request.param
    limits, keys, token, most, gallery = LIMITS, frozenset[str](), None, 100, one_run
    for key, value in re.findall(r"`([a-z_]+)(?:=([^`]+))?`", what):
        if key == "api_keys":
            keys = frozenset({"secret"})
        elif key == "metrics_token":
            token = value
        elif key == "max_waiting":
            most = int(value)
        else:
            limits = replace(limits, **{FIELDS[key]: float(value) if key == "time_limit" else int(value)})
    if what == "the run's directory is removed":
        run = shutil.copytree(folder / "maps_luong", tmp_path / "maps_luong")
        gallery = Gallery([run], "cpu", "float32", max_models=1)
        shutil.rmtree(run)
    if what == "no run can be loaded":
        run = shutil.copytree(folder / "maps_luong", tmp_path / "maps_luong")
        gallery = Gallery([run], "cpu", "float32", max_models=1)
        shutil.rmtree(run)
        with pytest.raises(Unavailable):
            gallery.load("maps_luong")
    if what.startswith("`metrics.json` is damaged"):
        run = shutil.copytree(folder / "maps_luong", tmp_path / "maps_luong")
        gallery = Gallery([run], "cpu", "float32", max_models=1)
        gallery.preload()
        (run / "metrics.json").write_text("{", encoding="utf-8")
    batcher = Batcher(gallery, batch_tokens=400, batch_window=0.0, max_waiting=most)
    release = threading.Event()
    app = application(Service(gallery, batcher, limits, Access(keys, token, ())))
    with TestClient(app, raise_server_exceptions=False, base_url="http://localhost") as client:
        if what == "a bug in the server":
            batcher.translate = None  # type: ignore[assignment]
        if what.endswith("with one request waiting"):
            computing = threading.Event()
            client.portal.start_task_soon(batcher.compute, "maps_luong", lambda _: (computing.set(), release.wait(60)))
            assert computing.wait(60)
        yield client
        release.set()


def sent(client: TestClient, cell: str) -> Any:
    """The answer to a request as it is written in a row."""
    request, *headers = re.findall(r"`([^`]+)`", cell.replace("NAME", "maps_luong"))
    method, path, *body = request.split(" ", 2)
    given = dict(header.split(": ") for header in headers)
    if body:
        kind = "application/json" if body[0].startswith("{") else "application/x-www-form-urlencoded"
        given.setdefault("content-type", kind)
    return client.request(method, path, headers=given, content="".join(body))


def shape(value: Any) -> Any:
    """The names and types of an answer; of a list, those of its elements."""
    if isinstance(value, dict):
        return {key: shape(each) for key, each in value.items()}
    if isinstance(value, list):
        return [shape(value[0])] if value else []
    return type(value).__name__


@pytest.mark.parametrize(("request_", "server", "status", "answer"), SENT, indirect=["server"])
def test_each_row(server: TestClient, request_: str, status: str, answer: str) -> None:
    found = sent(server, request_)
    assert found.status_code == int(status), found.text
    assert {name: found.headers.get(name) for name in SECURITY_HEADERS} == SECURITY_HEADERS
    if int(status) >= 400:
        text = answer.replace("NAME", "maps_luong")
        names = ("error", "message") if "/v2/" in request_ else ("error",)
        assert found.json() == dict.fromkeys(names, text)
        assert ("retry-after" in found.headers) == (status == "429")
    elif answer.startswith(("`{", "`[")):
        expected, body = json.loads(answer.strip("`")), found.json()
        if isinstance(body, dict):  # the tiny run's vocabulary has few letters
            body = {key: value for key, value in body.items() if key in expected or not key.startswith("unknown")}
        assert shape(body) == shape(expected)
    elif answer.startswith("`"):
        assert list(found.json()) == re.findall(r"`(\w+)`", answer)
    else:
        kinds = {"text for Prometheus": "text/plain", "server-sent events": "text/event-stream"}
        assert found.headers["content-type"].startswith(kinds[answer])


def test_every_endpoint_and_status_has_a_row(client: TestClient) -> None:
    described = client.get("/openapi.json").json()["paths"]
    operations = {
        f"{method.upper()} {path.replace('{name}', 'NAME')}" for path, each in described.items() for method in each
    }
    rows = {" ".join(re.split(r"[ ?]", row[0].strip("`"))[:2]) for row in SENT if row[2] == "200"}
    assert {row.strip("`") for row in rows} == operations
    assert {int(row[2]) for row in ROWS} == {200, 405, *STATUSES}
    assert [row[2] for row in NOT_SENT] == ["408"], "tests/serving/test_faults.py has it"
