"""A server of the tiny runs, and the lab's page that it serves."""

from collections.abc import Iterator
from typing import Any

import pytest
from served_runs import address, client, gallery, serve

__all__ = ["address", "client", "gallery", "lab", "serve"]


@pytest.fixture
def lab(browser: Any, address: str) -> Iterator[Any]:
    """An empty tab that may open the lab; at the end there was no message and no request to anybody else."""
    faults: list[str] = []
    context = browser.new_context(viewport={"width": 1280, "height": 720}, base_url=address)
    context.set_default_timeout(30_000)
    page = context.new_page()
    page.on(
        "request", lambda request: request.url.startswith((address, "data:", "blob:")) or faults.append(request.url)
    )
    page.on("console", lambda message: faults.append(message.text))
    page.on("pageerror", lambda error: faults.append(str(error)))
    yield page
    context.close()
    assert faults == []
