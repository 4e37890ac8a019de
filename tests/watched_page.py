"""A page in a browser that may neither ask anybody else for anything nor print to the console."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

# The pages that no test uses now, by their settings. In a new one the browser compiles every module of the page again,
# which takes it longer than most tests.
_idle: dict[str, Any] = {}

# The lab folds its choices away; tests choose among them all the time. A phone's stay folded.
_UNFOLD = """addEventListener("DOMContentLoaded", () => {
  const options = document.querySelector("#options");
  if (options && innerWidth > 600) options.open = true;
})"""


@contextmanager
def watched_page(browser: Any, *allowed: str, timeout: int = 60_000, **settings: Any) -> Iterator[Any]:
    """An empty page in a context with `settings`, which several tests use one after another.

    After each of them, these are taken back: further pages, the page's routes, what the last origin has stored,
    cookies, permissions, emulated media, the size of the window and the place of the mouse. Not taken back: what other
    origins have stored, routes and scripts of the context, listeners, and pressed keys.

    At the end, there was no request except to addresses that begin with one of `allowed`, no message in the console,
    and no uncaught exception. `timeout` is in milliseconds.
    """
    faults: list[str] = []
    listeners = {
        "request": lambda request: request.url.startswith(allowed) or faults.append(request.url),
        "console": lambda message: faults.append(message.text),
        "pageerror": lambda error: faults.append(str(error)),
    }
    page = _idle.pop(repr(sorted(settings.items())), None)
    if page is None or page.context.browser is not browser:
        context = browser.new_context(**settings)
        context.add_init_script(_UNFOLD)
        page = context.new_page()
    page.context.set_default_timeout(timeout)
    for event, listener in listeners.items():
        page.on(event, listener)
    try:
        yield page
        assert faults == [], faults
        for event, listener in listeners.items():
            page.remove_listener(event, listener)
        _reset(page, settings)
    except BaseException:
        page.context.close()
        raise
    _idle[repr(sorted(settings.items()))] = page


def _reset(page: Any, settings: dict[str, Any]) -> None:
    for other in page.context.pages:
        if other != page:
            other.close()
    page.unroute_all(behavior="ignoreErrors")
    if page.url.startswith(("http", "file")):
        page.evaluate("() => { localStorage.clear(); sessionStorage.clear(); }")
    page.goto("about:blank")
    page.context.clear_cookies()
    page.context.clear_permissions()
    media = ("color_scheme", "reduced_motion", "forced_colors", "contrast")
    page.emulate_media(media="null", **{name: settings.get(name, "null") for name in media})
    page.set_viewport_size(settings.get("viewport", {"width": 1280, "height": 720}))
    page.mouse.move(0, 0)


def link(page: Any) -> str:
    """The address of what the lab shows, which the page writes only after a moment without a change."""
    flush = "import('/page/address.js').then(({ flushAnchor }) => { flushAnchor(); return location.href; })"
    address: str = page.evaluate(flush)
    return address


def tips(cells: Any) -> list[str]:
    """What cells of a map say when they are pointed at; each ends with the weight."""
    result: list[str] = cells.evaluate_all("cells => cells.map((cell) => cell.dataset.tip)")
    return result
