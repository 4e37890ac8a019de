"""Test published clients of LibreTranslate and DeepL, unchanged, with a served run.

    pip install libretranslatepy deep-translator deepl
    npm install --prefix CLIENTS libretranslate translate
    python -m scripts.studies.serve_clients runs/demo --node CLIENTS

Prints one row per check, and exits with 1 if one failed. Without --node only the Python clients are tried. Needs a run
that translates from English to Vietnamese.
"""

import argparse
import importlib.metadata
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from nmt.errors import Mistake
from scripts.mistakes import report_mistakes
from scripts.server import Server, server

PACKAGES = ("libretranslatepy", "deep-translator", "deepl")
KEY, TEXT = "a-key", "How old is Mai?"
Check = tuple[str, Callable[[], Any], Callable[[Any], bool] | str]
"""The name of the check, the call, and either a test of its result or a part of the error that it must raise."""


def libretranslatepy(address: str) -> Iterator[Check]:
    from libretranslatepy import LibreTranslateAPI

    client, stranger = LibreTranslateAPI(address, KEY), LibreTranslateAPI(address)
    yield "translate", lambda: client.translate(TEXT, "en", "vi"), is_translated
    yield "translate from auto", lambda: client.translate(TEXT, "auto", "vi"), is_translated
    yield "detect", lambda: client.detect(TEXT), lambda answer: answer[0]["language"] == "en"
    yield "languages", client.languages, lambda answer: [language["code"] for language in answer] == ["en", "vi"]
    yield "unknown language", lambda: client.translate(TEXT, "en", "xx"), "400"
    yield "no API key", lambda: stranger.translate(TEXT, "en", "vi"), "403"


def deep_translator(address: str) -> Iterator[Check]:
    from deep_translator import LibreTranslator

    def client(key: str = KEY, source: str = "en") -> Any:
        return LibreTranslator(source, "vi", api_key=key, custom_url=f"{address}/")

    yield "translate", lambda: client().translate(TEXT), is_translated
    yield "translate from auto", lambda: client(source="auto").translate(TEXT), is_translated
    yield (
        "translate a list",
        lambda: client().translate_batch([TEXT, TEXT]),
        lambda answer: all(map(is_translated, answer)),
    )
    yield "wrong API key", lambda: client("other").translate(TEXT), "other"


def deepl(address: str) -> Iterator[Check]:
    from deepl import DeepLClient

    client, stranger = DeepLClient(KEY, server_url=address), DeepLClient("other", server_url=address)
    yield "translate", lambda: client.translate_text(TEXT, target_lang="VI").text, is_translated
    yield (
        "translate a list",
        lambda: client.translate_text([TEXT, TEXT], source_lang="EN", target_lang="VI"),
        lambda answers: [text.detected_source_lang for text in answers] == ["EN", "EN"],
    )
    yield (
        "html",
        lambda: client.translate_text(f"<b>{TEXT}</b>", target_lang="VI", tag_handling="html").text,
        lambda answers: answers.startswith("<b>") and answers.endswith("</b>"),
    )
    yield "unknown language", lambda: client.translate_text(TEXT, target_lang="XX"), "xx is not"
    yield "wrong API key", lambda: stranger.translate_text(TEXT, target_lang="VI"), "uthoriz"


def node(folder: Path, keyed: str, open_: str) -> Iterator[Check]:
    """Checks of the npm packages. `libretranslate` sends its key in a field that LibreTranslate does not read."""
    plain = f'require("libretranslate").translate({{query: "{TEXT}", target: "vi", apiurl: "{open_}"%s}})'
    yield "libretranslate: translate", lambda: _node(folder, plain % ', source: "en"'), is_translated
    yield "libretranslate: translate from auto", lambda: _node(folder, plain % ""), is_translated
    for what, source, target, key, good in (
        ("translate", "en", "vi", KEY, is_translated),
        ("wrong API key", "en", "vi", "other", "Invalid API key"),
        ("unavailable direction", "vi", "en", KEY, "not available"),
    ):
        settings = f'{{engine: "libre", url: "{keyed}/translate", key: "{key}"}}'
        rich = (
            f'import("translate").then(m => Object.assign(m.default, {settings})("{TEXT}", '
            f'{{from: "{source}", to: "{target}"}}))'
        )
        yield f"translate: {what}", partial(_node, folder, rich), good


def _node(folder: Path, expression: str) -> str:
    script = f"({expression}).then(console.log, error => {{ console.error(error.message); process.exit(1) }})"
    done = subprocess.run(["node", "-e", script], cwd=folder, capture_output=True, text=True, timeout=60)
    if done.returncode:
        raise RuntimeError(done.stderr.strip())
    return done.stdout.strip()


def is_translated(text: Any) -> bool:
    return isinstance(text, str) and text not in ("", TEXT) and "Mai" in text


def tried(name: str, checks: Iterator[Check]) -> Iterator[tuple[str, str, str, bool]]:
    """The client, the check, its result, and whether the result is as expected."""
    for what, action, good in checks:
        try:
            answer = action()
            passed = not isinstance(good, str) and good(answer)
        except Exception as error:  # every client has its own errors
            answer = f"{type(error).__name__}: {error}"
            passed = isinstance(good, str) and good in answer
        yield name, what, str(answer)[:80].replace("\n", " "), passed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="a run from English to Vietnamese")
    parser.add_argument("--node", type=Path, metavar="FOLDER", help="folder of the npm packages")
    options = parser.parse_args()
    missing = [name for name in PACKAGES if not _version(name)]
    if missing:
        raise Mistake(f"Missing packages: pip install {' '.join(missing)}")
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "keys").write_text(KEY + "\n")
        log = (folder / "log", folder / "log2")
        with server(options.run, log[0], f"api_keys={folder / 'keys'}") as keyed, server(options.run, log[1]) as open_:
            rows = list(_rows(options, keyed, open_))
    print("| client | check | result | |\n|---|---|---|---|")
    for client, what, answer, good in rows:
        print(f"| {client} | {what} | {answer} | {'passed' if good else 'FAILED'} |")
    sys.exit(not all(row[3] for row in rows))


def _rows(options: argparse.Namespace, keyed: Server, open_: Server) -> Iterator[tuple[str, str, str, bool]]:
    for checks in (libretranslatepy, deep_translator, deepl):
        package = checks.__name__.replace("_", "-")
        yield from tried(f"{package} {_version(package)}", checks(keyed.address))
    if options.node:
        versions = [
            f"{name} {json.loads((options.node / 'node_modules' / name / 'package.json').read_text())['version']}"
            for name in ("libretranslate", "translate")
        ]
        yield from tried("npm " + ", ".join(versions), node(options.node, keyed.address, open_.address))


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


if __name__ == "__main__":
    report_mistakes(main)
