"""The page of the interface at /docs, and the description that it shows."""

from typing import Any

import pytest
from fastapi.testclient import TestClient
from watched_page import watched_page

from nmt.serving.api_page import FILES
from nmt.serving.api_page_vietnamese import TEXTS
from nmt.serving.requests import STATUSES


def test_the_page_shows_every_endpoint_and_sends_a_request(browser: Any, address: str) -> None:
    with watched_page(browser, address, "data:", timeout=20_000) as page:
        page.goto(f"{address}/docs")
        page.locator(".opblock").first.wait_for()
        described = page.request.get(f"{address}/openapi.json").json()
        assert page.locator(".opblock").count() == sum(map(len, described["paths"].values()))
        page.locator("#operations-LibreTranslate-translate_translate_post .opblock-summary").click()
        page.locator(".try-out__btn").click()
        page.locator(".execute").click()
        assert "translatedText" in page.locator(".live-responses-table .highlight-code").first.text_content()


def test_a_vietnamese_browser_sees_the_page_in_vietnamese(browser: Any, address: str) -> None:
    with watched_page(browser, address, "data:", timeout=20_000, locale="vi-VN") as page:
        page.goto(f"{address}/docs")
        page.get_by_text("Cho biết máy chủ có đang chạy không.").wait_for()
        page.goto(f"{address}/docs?lang=en")
        page.get_by_text("Whether the server is running.").wait_for()


def texts_of(described: Any) -> set[str]:
    if isinstance(described, list):
        return set().union(*map(texts_of, described))
    if not isinstance(described, dict):
        return set()
    own = {part for name, part in described.items() if name in ("description", "summary") and isinstance(part, str)}
    return own.union(*map(texts_of, described.values()))


def test_every_text_has_its_vietnamese(client: TestClient, described: dict[str, Any]) -> None:
    assert texts_of(described) == set(TEXTS)
    vietnamese = client.get("/openapi.json", headers={"accept-language": "vi-VN,vi;q=0.9"}).json()
    assert texts_of(vietnamese) == set(TEXTS.values())
    assert client.get("/openapi.json?lang=vi").json() == vietnamese
    assert vietnamese["paths"].keys() == described["paths"].keys()


def test_only_the_pages_files_are_served(client: TestClient) -> None:
    for name in FILES:
        assert client.get(f"/docs/{name}").status_code == 200
    for name in ("index.html", "__init__.py", "..%2frequests.py"):
        assert client.get(f"/docs/{name}").status_code == 404
    assert client.get("/docs").headers["content-type"].startswith("text/html")


@pytest.fixture
def described(client: TestClient) -> dict[str, Any]:
    return client.get("/openapi.json").json()


def test_every_endpoint_and_error_is_described_in_words(described: dict[str, Any]) -> None:
    operations = {path: op for path, each in described["paths"].items() for op in each.values()}
    assert all(operation["summary"].endswith(".") for operation in operations.values())
    assert {tag for operation in operations.values() for tag in operation["tags"]} == {
        tag["name"] for tag in described["tags"]
    }
    for operation in operations.values():
        for status, answer in operation["responses"].items():
            if status != "200":
                assert answer["description"] == STATUSES[int(status)]["description"]
                assert answer["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/Failure"}
    assert set(operations["/translate"]["responses"]) == {"200", "400", "403", "408", "413", "429", "500", "503", "504"}
    assert "422" not in str(described["paths"])


def test_every_reference_and_no_unused_schema_is_there(described: dict[str, Any]) -> None:
    text = str(described)
    assert all(f"#/components/schemas/{name}'" in text for name in described["components"]["schemas"])


def test_the_examples_are_valid(client: TestClient, described: dict[str, Any]) -> None:
    """What the page sends when a visitor presses Execute."""
    for path in ("/translate", "/detect", "/v2/translate"):
        schema = described["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]
        example = {name: field["examples"][0] for name, field in schema["properties"].items() if field.get("examples")}
        assert client.post(path, json=example).status_code == 200
