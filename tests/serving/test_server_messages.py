"""Errors are in the language of the request: English or Vietnamese."""

import ast
from pathlib import Path
from string import Formatter

import pytest
from fastapi.testclient import TestClient

import nmt
from nmt.errors import TemplatedMessage
from nmt.serving.server_messages import VIETNAMESE, in_language, preferred_language


def fields(template: str) -> set[str | None]:
    return {field for _, field, _, _ in Formatter().parse(template) if field is not None}


def test_every_templated_message_has_a_translation_with_the_same_values_and_no_row_is_unused() -> None:
    used = set[str]()
    package = Path(nmt.__file__).parent
    for file in set(package.rglob("*.py")) - {package / "errors.py"}:  # which copies the messages of others
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "TemplatedMessage":
                used.add(node.args[0].value)  # type: ignore[attr-defined]
    assert used == set(VIETNAMESE)
    assert all(fields(english) == fields(vietnamese) for english, vietnamese in VIETNAMESE.items())


def test_every_error_of_an_endpoint_is_a_templated_message() -> None:
    plain = []
    for file in Path(nmt.__file__).parent.joinpath("serving").glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "HTTPException":
                plain += [part.value for part in node.args[1:] if isinstance(part, ast.Constant)]
    # Nobody receives the message about a client that has left.
    assert set(plain) == {"The client has disconnected."}


@pytest.mark.parametrize(
    ("header", "language"),
    [
        ("", "en"),
        ("vi", "vi"),
        ("vi-VN,vi;q=0.9,en-US;q=0.8", "vi"),
        ("en-US,en;q=0.9,vi;q=0.8", "en"),
        ("fr, vi;q=0.5, en;q=0.4", "vi"),
        ("en;q=0, vi;q=0.1", "vi"),
        ("VI;q=1.0", "vi"),
        ("fr, de", "en"),
        ("viking, *;q=0.1", "en"),
        ("vi;q=x,,;", "en"),
    ],
)
def test_the_language_that_a_header_prefers(header: str, language: str) -> None:
    assert preferred_language(header) == language


def test_a_message_is_english_text_and_an_unknown_one_stays() -> None:
    message = TemplatedMessage("{code} is not supported", code="xx")
    assert message == "xx is not supported"
    assert in_language(message, "vi") == "Không hỗ trợ ngôn ngữ xx"
    assert in_language("Something else.", "vi") == "Something else."


@pytest.mark.parametrize(
    ("path", "body", "english", "vietnamese"),
    [
        ("/translate", {"q": "a", "source": "xx", "target": "vi"}, "xx is not supported", "Không hỗ trợ ngôn ngữ xx"),
        ("/translate", {"q": "a"}, "missing source parameter", "Yêu cầu không hợp lệ: thiếu tham số source"),
        ("/v1/attend", {"text": ""}, "The source is empty; write a sentence.", "Câu nguồn trống; hãy viết một câu."),
        (
            "/v1/attend",
            {"text": "one", "target": ""},
            "The target is empty; write a sentence.",
            "Bản dịch trống; hãy viết một câu.",
        ),
        (
            "/v1/attend",
            {"text": "one", "target": "one " * 250},
            "pieces; shorten it to at most 199.",
            "từ con; hãy rút ngắn còn nhiều nhất 199 từ con.",
        ),
        ("/nowhere", {}, "There is nothing at /nowhere; /docs", "Không có gì ở /nowhere; xem các đường dẫn"),
        ("/v1/runs", {}, "/v1/runs does not take POST; use GET, HEAD.", "/v1/runs không nhận POST; hãy dùng GET, HEAD"),
        ("/v1/attend", {"text": "a", "run": "b"}, "There is no run 'b'", "Không có mô hình 'b'"),
    ],
)
def test_errors_are_in_the_language_of_the_request(
    client: TestClient, path: str, body: dict[str, str], english: str, vietnamese: str
) -> None:
    for header, expected in (("en-US,en;q=0.9", english), ("vi-VN,vi;q=0.9,en;q=0.8", vietnamese)):
        assert expected in client.post(path, json=body, headers={"accept-language": header}).json()["error"]


@pytest.mark.parametrize(
    ("method", "path", "status", "text"),
    [
        ("GET", "/", 200, ""),
        ("GET", "/page/missing.js", 404, "There is nothing at /page/missing.js; /docs"),
        ("GET", "/docs/missing.js", 404, "There is nothing at /docs/missing.js; /docs"),
        ("GET", "/docs/", 404, "There is nothing at /docs/; /docs"),
        ("GET", "/v2/other", 404, "There is nothing at /v2/other; /docs"),
        ("GET", "/%7Ba%7D%0Ab", 404, r"There is nothing at /{a}\nb; /docs"),
        ("PUT", "/translate", 405, "/translate does not take PUT; use POST."),
        ("DELETE", "/health", 405, "/health does not take DELETE; use GET, HEAD."),
        ("POST", "/docs/start.js", 405, "/docs/start.js does not take POST; use GET, HEAD."),
    ],
)
def test_an_unknown_path_or_method_is_named(client: TestClient, method: str, path: str, status: int, text: str) -> None:
    answer = client.request(method, path)
    assert answer.status_code == status
    if status != 200:
        assert answer.json()["error"].startswith(text)
        assert answer.json().get("message") == (answer.json()["error"] if path.startswith("/v2/") else None)
    if status == 405:
        assert answer.headers["allow"] == text.rpartition("use ")[2].rstrip(".")


def test_the_errors_of_a_stream_too(client: TestClient) -> None:
    answer = client.post("/v1/translate/stream", json={"text": " "}, headers={"accept-language": "vi"})
    assert "Câu nguồn trống; hãy viết một câu." in answer.text
