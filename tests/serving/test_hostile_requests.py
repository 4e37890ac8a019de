"""Requests that no honest client sends: the answer is an error with a sentence, and it comes at once."""

import asyncio
import json
import logging
import time
from dataclasses import replace
from typing import Any

import pytest
from fastapi import HTTPException, Request
from fastapi.testclient import TestClient
from served_runs import LIMITS, Serve
from starlette.datastructures import Headers

from nmt.serving.application import application
from nmt.serving.batcher import Batcher
from nmt.serving.gallery import Gallery
from nmt.serving.origins import refusal
from nmt.serving.requests import within
from nmt.serving.service import Access, Service

JSON = {"content-type": "application/json"}
FORM = {"content-type": "application/x-www-form-urlencoded"}
ASKED = {"q": "one two.", "source": "en", "target": "vi"}


@pytest.mark.parametrize("number", [11, 100_000])
def test_empty_texts_are_counted_too(serve: Serve, number: int) -> None:
    client = serve(replace(LIMITS, body_bytes=1_000_000))
    empty = [""] * number
    began = time.monotonic()
    for path, fields in (
        ("/translate", {"q": empty, "source": "en", "target": "vi"}),
        ("/translate", {"q": empty, "source": "auto", "target": "vi"}),
        ("/translate", {"q": empty, "source": "en", "target": "vi", "format": "html"}),
        ("/detect", {"q": empty}),
        ("/v2/translate", {"text": empty, "target_lang": "VI"}),
    ):
        answer = client.post(path, json=fields)
        text = f"Invalid request: {number} texts exceed the limit of 10; send several requests"
        assert (answer.status_code, answer.json()["error"]) == (400, text)
    assert time.monotonic() - began < 5, "each would have taken more"


@pytest.mark.parametrize(
    ("path", "content", "headers"),
    [
        ("/translate", json.dumps(ASKED).encode("utf-16"), JSON),
        ("/translate", b'{"q": "caf\xe9", "source": "en", "target": "vi"}', JSON),
        ("/translate", b"q=%ff&source=en&target=vi", FORM),
        ("/translate?q=%ff&source=en&target=vi", b"", {}),
        *(
            (
                "/translate",
                b'--x\r\ncontent-disposition: form-data; name="q"\r\n\r\n+2AA-\r\n--x--\r\n',
                {"content-type": f"multipart/form-data; boundary=x; charset={codec}"},
            )
            for codec in ("utf-7", "undefined")
        ),
    ],
)
def test_only_utf_8_is_read(client: TestClient, path: str, content: bytes, headers: dict[str, str]) -> None:
    answer = client.post(path, content=content, headers=headers)
    text = "Invalid request: the text is not UTF-8; send UTF-8."
    assert (answer.status_code, answer.json()) == (400, {"error": text})


NO_JSON = "the body is not JSON; send JSON."
UNDECLARED = "the body is not declared as JSON; send JSON with the header Content-Type: application/json."


@pytest.mark.parametrize("path", ["/v1/translate", "/v1/score"])
@pytest.mark.parametrize(
    ("content", "headers", "english", "vietnamese"),
    [
        (b'{"text": "caf\xe9"}', JSON, "the text is not UTF-8; send UTF-8.", "hãy gửi UTF-8."),
        (b'{"text": ', JSON, NO_JSON, "hãy gửi JSON."),
        (b'{"text": ' + b"[" * 2000, JSON, NO_JSON, "hãy gửi JSON."),
        (b'{"text": "one"}', {}, UNDECLARED, "hãy gửi JSON với tiêu đề Content-Type: application/json."),
        (b'{"text": "one"}', FORM, UNDECLARED, "hãy gửi JSON với tiêu đề Content-Type: application/json."),
        (b"", JSON, "the body is empty; send JSON.", "nội dung trống; hãy gửi JSON."),
        (b'"one"', JSON, "the body must be a JSON object.", "nội dung phải là một đối tượng JSON."),
    ],
)
def test_a_body_that_the_lab_cannot_read_is_answered_with_what_to_send(
    client: TestClient, path: str, content: bytes, headers: dict[str, str], english: str, vietnamese: str
) -> None:
    answer = client.post(path, content=content, headers=headers)
    assert (answer.status_code, answer.json()) == (400, {"error": f"Invalid request: {english}"})
    answer = client.post(path, content=content, headers={**headers, "accept-language": "vi"})
    assert answer.json()["error"].endswith(vietnamese)


def test_an_uploaded_file_is_ignored(client: TestClient) -> None:
    answer = client.post("/translate", data=ASKED, files={"file": ("page.pdf", b"%PDF\xff\x00")})
    assert answer.status_code == 200


def test_too_many_fields_are_refused(serve: Serve) -> None:
    client = serve(replace(LIMITS, body_bytes=100_000))
    answer = client.post("/translate", content=b"a&" * 20_000, headers=FORM)
    text = "Invalid request: the form has more than 10000 fields; send fewer."
    assert (answer.status_code, answer.json()) == (400, {"error": text})


def test_an_unpaired_surrogate_in_a_name_is_an_unknown_run(client: TestClient) -> None:
    answer = client.post("/v1/attend", content=rb'{"run": "\ud800", "text": "a"}', headers=JSON)
    text = r"There is no run '\ud800'; use one listed at /v1/runs."
    assert (answer.status_code, answer.json()) == (404, {"error": text})


def test_a_long_name_of_an_unknown_run_is_shortened(serve: Serve) -> None:
    client = serve(replace(LIMITS, body_bytes=200_000))
    answer = client.post("/v1/attend", json={"run": "A" * 100_000, "text": "a"})
    assert answer.status_code == 404
    assert len(answer.text) < 1000
    assert answer.json()["error"].endswith("AAA'; use one listed at /v1/runs.")


def test_what_is_wrong_with_a_body_is_not_taken_for_a_client_that_has_left() -> None:
    """Of a GET, nothing reads the body except the wait for the client to leave."""

    async def receive() -> dict[str, Any]:
        raise HTTPException(413, "too large")

    async def answer() -> None:
        await within(Request({"type": "http"}, receive), 60, asyncio.sleep(60))

    with pytest.raises(HTTPException) as raised:
        asyncio.run(answer())
    assert raised.value.status_code == 413


def test_head_is_get_without_the_body(client: TestClient) -> None:
    for path in ("/health", "/languages", "/", "/docs", "/metrics", "/v1/runs", "/frontend/settings", "/openapi.json"):
        head, get = client.head(path), client.get(path)
        assert (head.status_code, head.content) == (200, b"")
        assert head.headers["content-type"] == get.headers["content-type"]
        if path != "/metrics":
            assert head.headers["content-length"] == get.headers["content-length"]
    assert client.head("/translate").status_code == 405


def test_a_key_with_other_letters_than_ascii_may_be_in_a_header(serve: Serve) -> None:
    client = serve(keys=frozenset({"khóa"}))
    assert client.get("/v1/runs", headers={"authorization": "Bearer khóa".encode()}).status_code == 200
    assert client.get("/v1/runs", headers={"authorization": "Bearer khoá".encode()}).status_code == 403
    assert client.get("/v1/runs", params={"api_key": "khóa"}).status_code == 200


@pytest.mark.parametrize("path", ["/translate", "/v1/attend"])
def test_a_client_that_leaves_in_its_body_is_no_error(
    gallery: Gallery, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    service = Service(gallery, Batcher(gallery, 400, 0.0, 100), LIMITS, Access(frozenset(), None, ()))
    app = application(service)
    parts = [{"type": "http.disconnect"}, {"type": "http.request", "body": b"{", "more_body": True}]
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return parts.pop()

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    scope = {
        **{"type": "http", "method": "POST", "path": path, "raw_path": path.encode(), "query_string": b""},
        **{"headers": [(b"content-type", b"application/json")], "http_version": "1.1", "scheme": "http"},
    }
    with caplog.at_level(logging.DEBUG):
        asyncio.run(app(scope, receive, send))
    assert sent[0]["status"] == 499  # nobody receives it
    assert not [record for record in caplog.records if record.exc_info]


@pytest.mark.parametrize(
    ("method", "headers", "refused"),
    [
        ("GET", {"host": "localhost:8000"}, None),
        ("GET", {"host": "lab.localhost"}, None),
        ("GET", {"host": "127.0.0.1"}, None),
        ("GET", {"host": "[::1]:8000"}, None),
        ("GET", {"host": "192.168.1.5:8000"}, None),
        ("GET", {"host": "MY.org"}, None),
        ("GET", {}, None),
        ("GET", {"host": "evil.example"}, "The server does not answer to the host 'evil.example'; add it to allow"),
        ("GET", {"host": "localhost.evil.example"}, "The server does not answer to the host 'localhost.evil"),
        ("GET", {"host": "[::1"}, "The server does not answer to the host '[::1'"),
        ("GET", {"host": ""}, "The server does not answer to the host ''"),
        ("GET", {"host": "my.org", "origin": "https://evil.example", "sec-fetch-site": "cross-site"}, None),
        ("POST", {"host": "my.org"}, None),
        ("POST", {"host": "my.org", "origin": "http://my.org"}, None),
        ("POST", {"host": "my.org", "origin": "https://evil.example", "sec-fetch-site": "same-origin"}, None),
        ("POST", {"host": "my.org", "sec-fetch-site": "none"}, None),
        ("POST", {"host": "my.org", "origin": "https://page.org", "sec-fetch-site": "cross-site"}, None),
        ("POST", {"host": "my.org", "origin": "https://page.org"}, None),
        ("POST", {"host": "my.org", "origin": "https://evil.example"}, "Pages of the site 'https://evil.example' may"),
        ("POST", {"host": "my.org:8000", "origin": "http://my.org"}, "Pages of the site 'http://my.org' may not use"),
        ("POST", {"host": "my.org", "origin": "null"}, "Pages of the site 'null' may not use this server; add it to"),
        ("POST", {"host": "my.org", "sec-fetch-site": "cross-site"}, "Pages of the site 'cross-site' may not use"),
        ("POST", {"host": "my.org", "sec-fetch-site": "same-site"}, "Pages of the site 'same-site' may not use this"),
    ],
)
def test_hosts_and_sites_that_may_use_the_server(method: str, headers: dict[str, str], refused: str | None) -> None:
    found = refusal(method, Headers(headers), {"my.org"}, ["https://page.org"])
    assert (found is None) if refused is None else str(found).startswith(refused)
    if method == "GET" and headers.get("host") == "evil.example":
        assert refusal(method, Headers(headers), {"*"}, []) is None


def test_other_hosts_and_sites_are_refused_by_every_endpoint(client: TestClient) -> None:
    for path in ("/health", "/", "/docs", "/translate", "/nowhere", "/openapi.json"):
        answer = client.get(path, headers={"host": "evil.example"})
        assert answer.status_code == 403
        assert "add it to allowed_hosts" in answer.json()["error"]
    answer = client.post("/translate", params=ASKED, headers={"origin": "https://evil.example"})
    text = "Pages of the site 'https://evil.example' may not use this server; add it to allow_origins."
    assert (answer.status_code, answer.json()) == (403, {"error": text})
    assert client.post("/translate", params=ASKED, headers={"origin": "http://localhost"}).status_code == 200


def test_a_long_list_of_changes_is_no_recursion(client: TestClient) -> None:
    fields = {"text": "one", "target": "một"}
    plain = client.post("/v1/intervene", json={**fields, "changes": [{"temperature": 2.0}]}).json()
    changes = [{"temperature": 2.0}, {"temperature": 0.5}] * 30 + [{"temperature": 2.0}]
    assert client.post("/v1/intervene", json={**fields, "changes": changes}).json()["forced"] == plain["forced"]
    many = client.post("/v1/intervene", json={**fields, "changes": [{"temperature": 1.0}] * 120})
    assert many.status_code == 200
    hot = client.post("/v1/intervene", json={**fields, "changes": [{"temperature": 1e3}] * 110})
    told = "The temperatures of cross multiply to inf: use less extreme ones."
    assert (hot.status_code, hot.json()) == (400, {"error": told})


def test_columns_and_weights_that_the_source_does_not_have_are_refused(client: TestClient) -> None:
    columns = len(client.post("/v1/attend", json={"text": "one"}).json()["maps"]["cross"]["columns"])

    def asked(**change: Any) -> tuple[int, Any]:
        answer = client.post("/v1/intervene", json={"text": "one", "changes": [change]})
        return answer.status_code, answer.json().get("error")

    text = f"column is 9999; cross has columns 0 to {columns - 1}."
    assert asked(way="scale", columns=[0, 9999]) == (400, text)
    assert asked(way="scale", columns=[columns - 1]) == (200, None)
    text = f"There are {columns + 1} weights; cross has {columns} columns."
    assert asked(way="weights", weights=[0.0] * (columns + 1)) == (400, text)
