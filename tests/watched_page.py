"""A page in a browser that may neither ask anybody else for anything nor print to the console."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def watched_page(browser: Any, *allowed: str, timeout: int = 60_000, **settings: Any) -> Iterator[Any]:
    """An empty page in a context with `settings`.

    At the end, there was no request except to addresses that begin with one of `allowed`, no message in the console,
    and no uncaught exception. `timeout` is in milliseconds.
    """
    faults: list[str] = []
    context = browser.new_context(**settings)
    context.set_default_timeout(timeout)
    page = context.new_page()
    page.on("request", lambda request: request.url.startswith(allowed) or faults.append(request.url))
    page.on("console", lambda message: faults.append(message.text))
    page.on("pageerror", lambda error: faults.append(str(error)))
    yield page
    context.close()
    assert faults == []
