"""A server of the tiny runs, and the lab's page that it serves."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from served_runs import address, client, serve
from watched_page import watched_page

from nmt.serving.gallery import Gallery

__all__ = ["address", "client", "gallery", "lab", "serve"]


@pytest.fixture(scope="module")
def gallery(folder: Path) -> Gallery:
    """Both runs fit into memory: with room for one, most tests would load the first run again."""
    return Gallery([folder / "maps_luong", folder / "maps_transformer"], "cpu", "float32", max_models=2)


@pytest.fixture
def lab(browser: Any, address: str) -> Iterator[Any]:
    """An empty page that may open the lab, whose address is its base URL."""
    settings = {"viewport": {"width": 1280, "height": 720}, "base_url": address}
    with watched_page(browser, address, "data:", "blob:", timeout=30_000, **settings) as page:
        yield page
