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


def test_every_mistake_of_the_lab_is_a_templated_message() -> None:
    package = Path(nmt.__file__).parent
    rooms = (
        "serving/lab.py",
        "serving/answers.py",
        "serving/streams.py",
        "serving/questions.py",
        "serving/texts.py",
        "insight/sentence_pair.py",
    )
    insight = ("interventions", "cells", "known_alignments", "attribution_maps", "beams")
    plain = []
    for file in (*rooms, *(f"insight/{name}.py" for name in insight)):
        for node in ast.walk(ast.parse((package / file).read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Mistake":
                (message,) = node.args
                if not (isinstance(message, ast.Call) and ast.unparse(message.func) == "TemplatedMessage"):
                    plain.append(ast.unparse(message)[:40])
    # No request of the lab causes these: it has no unknown methods, no steps and no documents, and the corpus that nmt
    # installs.
    assert [text.partition("(")[0] for text in plain] == [
        "f'The embedded corpus has no alignments ",
        "unknown",
        "'No line has an earlier sentence in its ",
        "f'steps has no effect with method={name}",
        "f'steps is {steps}; it must be at least ",
    ]


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
    message = TemplatedMessage("{code} is not supported; use one listed at /languages", code="xx")
    assert message == "xx is not supported; use one listed at /languages"
    assert in_language(message, "vi") == "Không hỗ trợ ngôn ngữ xx; hãy dùng một ngôn ngữ trong /languages"
    assert in_language("Something else.", "vi") == "Something else."


@pytest.mark.parametrize(
    ("path", "body", "english", "vietnamese"),
    [
        (
            "/translate",
            {"q": "a", "source": "xx", "target": "vi"},
            "xx is not supported; use one listed at /languages",
            "Không hỗ trợ ngôn ngữ xx; hãy dùng một ngôn ngữ trong /languages",
        ),
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


@pytest.mark.parametrize(
    ("path", "body", "vietnamese"),
    [
        ("attend", {"text": 1}, "text: phải là văn bản"),
        ("attend", {"text": "one", "target_ids": 3}, "target_ids: phải là một danh sách"),
        ("attend", {"text": "one", "target_ids": [1]}, "target_ids phải gồm các số từ 4 đến 292; các số nhỏ hơn"),
        ("attend", {"text": "one", "beam_size": 0}, "beam_size: phải lớn hơn hoặc bằng 1"),
        ("attend", {"text": "one", "beam_size": "x"}, "beam_size: phải là số nguyên"),
        ("attend", {"text": "one", "beam_size": 101}, "beam_size: phải nhỏ hơn hoặc bằng 100"),
        ("translate", {"text": "one", "beam_size": 2, "n_best": 3}, "phải lớn hơn hoặc bằng n_best, tức là 3"),
        ("attend", {"text": "one", "length_penalty": "x"}, "length_penalty: phải là một số"),
        ("attend", {"text": "one", "wrong": 1}, "wrong: không có trường này"),
        ("attend", [], "nội dung phải là một đối tượng JSON."),
        ("attribute", {"text": "one", "contrast": "a" * 1001}, "contrast: không được dài quá 1000 ký tự"),
        ("attribute", {"text": "one", "method": "x"}, "method: phải là 'gradient_x_input', 'integrated_gradients', "),
        ("attribute", {"text": "one", "contrast": "one two"}, "contrast là 'one two', gồm"),
        ("attribute", {"text": "one", "contrast": ""}, "contrast là '', không phải là từ con"),
        ("attribute", {"text": "one", "contrast": "a", "method": "value_zeroing"}, "method=value_zeroing so sánh"),
        ("explain", {"text": "one", "head": 5, "row": 0}, "head là 5; cross có head từ 0 đến 1."),
        ("explain", {"text": "one", "layer": 5, "row": 0}, "layer là 5; cross chỉ có layer 0."),
        ("explain", {"text": "one", "site": "decoder_self", "row": 0}, "Mô hình không có loại chú ý 'decoder_self'"),
        ("align", {"text": "one"}, "Câu này không có đáp án gióng hàng từ"),
        ("intervene", {"text": "one", "changes": []}, "changes: phải có ít nhất 1 phần tử"),
        ("intervene", {"text": "one", "changes": [{}]}, "Yêu cầu này không thay đổi gì"),
        ("intervene", {"text": "one", "changes": [{"temperature": 2, "head": 0}]}, "hãy bỏ head và steps"),
        ("intervene", {"text": "one", "changes": [{"way": "weights", "weights": [2]}]}, "weights phải có một số"),
        ("intervene", {"text": "one", "changes": [{"way": "weights", "weights": [0] * 999}]}, "Có 999 trọng số"),
        ("intervene", {"text": "one", "changes": [{"way": "scale", "columns": [999]}]}, "column là 999; cross có"),
        ("intervene", {"text": "one", "changes": [{"layer": -1}]}, "changes.0.layer: phải lớn hơn hoặc bằng 0"),
        ("intervene", {"text": "one", "changes": [{"layer": 10000}]}, "changes.0.layer: phải nhỏ hơn 10000"),
    ],
)
def test_what_the_lab_cannot_do_is_said_in_vietnamese(
    client: TestClient, path: str, body: object, vietnamese: str
) -> None:
    answer = client.post(f"/v1/{path}", json=body, headers={"accept-language": "vi"})
    assert answer.status_code == 400
    assert vietnamese in answer.json()["error"]


def test_the_errors_of_a_stream_too(client: TestClient) -> None:
    answer = client.post("/v1/translate/stream", json={"text": " "}, headers={"accept-language": "vi"})
    assert "Câu nguồn trống; hãy viết một câu." in answer.text
