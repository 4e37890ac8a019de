"""The pages work behind a proxy that adds a prefix to every address."""

import re
from urllib.parse import urljoin

import pytest
from fastapi.testclient import TestClient

from nmt.pages.bundle import WEB

BEFORE = "http://testserver/nmt"


@pytest.mark.parametrize(("page", "linked"), [("/", 3), ("/docs", 3)])
def test_met_prefix_of_a_proxy_is_kept_by_every_address(client: TestClient, page: str, linked: int) -> None:
    links = re.findall(r'(?:href|src)="([^"?]+?)"', client.get(page).text)
    addresses = [urljoin(BEFORE + page, link) for link in links if not link.startswith("data:")]
    assert len(addresses) == linked
    for address in addresses:
        assert address.startswith(f"{BEFORE}/")
        assert client.get(address.removeprefix(BEFORE)).status_code == 200


def test_met_prefix_no_module_asks_an_absolute_path() -> None:
    for path in WEB.rglob("*.js"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"""(?:fetch\(|from |import\()\s*["'`]/""", text), path
    for path in WEB.rglob("*.css"):
        assert not re.search(r"""url\(["']?/""", path.read_text(encoding="utf-8")), path


def test_met_prefix_the_api_description_and_answers_name_no_absolute_address(client: TestClient) -> None:
    assert client.get("/openapi.json").json()["servers"] == [{"url": "."}]
    assert client.get("/docs/", follow_redirects=False).status_code == 404, "a redirect would lose the prefix"
