"""Browsers for scripts that measure a page: Chromium through Playwright, and Firefox through its Marionette protocol.

A browser opens files without a window, on one processor core. Linux only.
"""

import base64
import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from nmt.errors import Mistake
from scripts.processes import cpu_seconds, of_each, proportional_mib

CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
_FIREFOX = ("firefox-esr", "firefox")
_START_SECONDS, _ANSWER_SECONDS = 120, 600
_SIZE = (1280, 900)


class Browser(NamedTuple):
    """An open browser with one page."""

    name: str
    process: int
    open: Callable[[str], None]
    """Opens an address."""
    run: Callable[..., Any]
    """What the body of an async function in JavaScript returns; its arguments are in the array `given`."""
    faults: Callable[[], list[str]]
    """The page's errors and messages (in Firefox, errors alone), and its requests over a network."""
    picture: Callable[[], bytes]
    """The whole page as PNG."""

    @property
    def cpu_seconds(self) -> float:
        """Seconds of CPU that all processes of the browser have used so far."""
        return sum(of_each(self.process, cpu_seconds))

    @property
    def memory(self) -> float:
        """Memory of all its processes in MiB, where what several share counts once."""
        return sum(of_each(self.process, proportional_mib))


@contextmanager
def _started(names: tuple[str, ...], arguments: list[str], port_file: Path) -> Iterator[tuple[int, int]]:
    """The process of a browser, and the port that it has written to a file."""
    path = next(filter(None, map(shutil.which, names)), None)
    if path is None:
        raise Mistake(f"This study needs one of {', '.join(names)} on the PATH: install it, or leave that browser out.")
    core = max(os.sched_getaffinity(0))
    process = subprocess.Popen(
        [path, *arguments, "about:blank"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=partial(os.sched_setaffinity, 0, {core}),
    )
    try:
        until = time.monotonic() + _START_SECONDS
        while not (port_file.exists() and (text := port_file.read_text(encoding="ascii").split())):
            if process.poll() is not None or time.monotonic() > until:
                raise Mistake(f"{path} did not start: try it by hand, or leave that browser out.")
            time.sleep(0.1)
        yield process.pid, int(text[0])
    finally:
        process.terminate()
        process.wait()


def _over_network(url: str) -> list[str]:
    return [] if url.startswith(("file:", "blob:", "data:")) else [url]


@contextmanager
def chromium() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    with TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        arguments = ["--headless=new", "--no-sandbox", "--no-first-run", "--remote-debugging-port=0"]
        arguments += [f"--user-data-dir={profile}", f"--window-size={_SIZE[0]},{_SIZE[1]}"]
        with (
            _started(CHROMIUM, arguments, Path(profile) / "DevToolsActivePort") as (process, port),
            sync_playwright() as playwright,
        ):
            connected = playwright.chromium.connect_over_cdp(f"http://127.0.0.1:{port}")
            [page] = connected.contexts[0].pages
            page.set_default_timeout(1000 * _ANSWER_SECONDS)
            faults: list[str] = []
            page.on("console", lambda message: faults.append(message.text))
            page.on("pageerror", lambda error: faults.append(str(error)))
            page.on("request", lambda request: faults.extend(_over_network(request.url)))

            def open_address(address: str) -> None:
                page.goto(address)

            yield Browser(
                f"Chromium {connected.version}",
                process,
                open_address,
                lambda body, *given: page.evaluate(f"async (given) => {{ {body} }}", [*given]),
                lambda: faults,
                lambda: page.screenshot(full_page=True),
            )


class _Marionette:
    """The commands of https://firefox-source-docs.mozilla.org/testing/marionette/Protocol.html."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=_ANSWER_SECONDS)
        self._stream = self._socket.makefile("rb")
        self._number = 0
        self._message()  # the browser's greeting

    def close(self) -> None:
        self._stream.close()
        self._socket.close()

    def _message(self) -> Any:
        """A message, which its length and a colon precede."""
        length = b""
        while not length.endswith(b":"):
            length += self._stream.read(1)
        return json.loads(self._stream.read(int(length[:-1])))

    def ask(self, command: str, **parameters: Any) -> Any:
        self._number += 1
        sent = json.dumps([0, self._number, command, parameters]).encode()
        self._socket.sendall(b"%d:%b" % (len(sent), sent))
        _, _, error, result = self._message()
        if error:
            raise RuntimeError(f"Firefox could not do {command}: {error['message']}")
        return result


# Firefox itself makes requests, which belong to no page.
_PREFERENCES = """
user_pref("marionette.port", 0);
user_pref("app.update.enabled", false);
user_pref("datareporting.policy.dataSubmissionEnabled", false);
"""
_OBSERVE = """
Services.console.reset();
globalThis.requested = [];
Services.obs.addObserver((subject) => {
  const channel = subject.QueryInterface(Ci.nsIHttpChannel);
  if (channel.loadInfo.browsingContextID) requested.push(channel.URI.spec);
}, "http-on-modify-request");
"""
_FAULTS = """
const errors = Services.console.getMessageArray().filter((message) => message instanceof Ci.nsIScriptError);
return [...requested, ...errors.filter(({ sourceName }) => /^(file|blob|data):/.test(sourceName)).map(String)];
"""


@contextmanager
def firefox() -> Iterator[Browser]:
    with TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        (Path(profile) / "user.js").write_text(_PREFERENCES, encoding="ascii")
        arguments = ["--headless", "--marionette", "--remote-allow-system-access", "--no-remote", "--profile", profile]
        with _started(_FIREFOX, arguments, Path(profile) / "MarionetteActivePort") as (process, port):
            marionette = _Marionette(port)
            timeouts = {"script": 1000 * _ANSWER_SECONDS, "pageLoad": 1000 * _ANSWER_SECONDS}
            session = marionette.ask("WebDriver:NewSession", capabilities={"alwaysMatch": {"timeouts": timeouts}})
            marionette.ask("WebDriver:SetWindowRect", width=_SIZE[0], height=_SIZE[1])

            def system(script: str) -> Any:
                """Runs a script with the rights of the browser itself."""
                marionette.ask("Marionette:SetContext", value="chrome")
                result = marionette.ask(
                    "WebDriver:ExecuteScript", script=script, args=[], sandbox="system", newSandbox=False
                )
                marionette.ask("Marionette:SetContext", value="content")
                return result["value"]

            def run(body: str, *given: Any) -> Any:
                script = (
                    f"const [given, done] = arguments; (async () => {{ {body} }})()"
                    ".then((value) => done({ value }), (error) => done({ error: String(error) }));"
                )
                answer = marionette.ask("WebDriver:ExecuteAsyncScript", script=script, args=[given])["value"]
                if "error" in answer:
                    raise RuntimeError(f"The page's script failed in Firefox: {answer['error']}")
                return answer.get("value")

            system(_OBSERVE)
            try:
                yield Browser(
                    f"Firefox {session['capabilities']['browserVersion']}",
                    process,
                    lambda address: marionette.ask("WebDriver:Navigate", url=address) and None,
                    run,
                    lambda: system(_FAULTS),
                    lambda: base64.b64decode(marionette.ask("WebDriver:TakeScreenshot", full=True)["value"]),
                )
            finally:
                marionette.close()


BROWSERS = {"chromium": chromium, "firefox": firefox}
