"""The lab's page in a browser: how long until the first word, the translation, its map, and the result of a change."""

import argparse
import statistics
import tempfile
from pathlib import Path
from typing import Any

from nmt.errors import Mistake
from nmt.runs.directory import RunDirectory
from nmt.runs.included import named_run
from nmt.text.lines import read_lines
from scripts.bench.viewer_cost import chromium
from scripts.server import server

_STEPS = {
    "first": "first word",
    "translation": "whole translation",
    "map": "map drawn",
    "change": "result of a change",
}

# Resolves to the milliseconds from the click to the first word, the last word, and the finished map.
_TRANSLATE = """text => new Promise(resolve => {
    const words = document.querySelector("#answer .translation"), results = document.querySelector("#results");
    const began = performance.now(), seen = [];
    const note = () => words.textContent && seen.push(performance.now() - began);
    new MutationObserver(note).observe(words, { childList: true });
    new MutationObserver((_, observer) => {
        if (results.ariaBusy !== "false") return;
        observer.disconnect();
        // The last change of the text underlines words; the one before it adds the last word.
        requestAnimationFrame(() => resolve([seen[0], seen.at(-2), performance.now() - began]));
    }).observe(results, { attributes: true });
    document.querySelector("#text").value = text;
    document.querySelector("#ask button").click();
})"""

# Resolves to the milliseconds from the click to the second translation with its map.
_CHANGE = """() => new Promise(resolve => {
    const results = document.querySelector("#results"), began = performance.now();
    new MutationObserver((_, observer) => {
        if (results.ariaBusy !== "false") return;
        observer.disconnect();
        requestAnimationFrame(() => resolve(performance.now() - began));
    }).observe(results, { attributes: true });
    document.querySelector("#actions button").click();
})"""


def in_browser(address: str, texts: list[str]) -> dict[str, list[float]]:
    """Seconds of each step for each text. The first text is also used as a warm-up, which loads the model."""
    seconds_of: dict[str, list[float]] = {name: [] for name in _STEPS}
    with chromium() as browser:
        for number, text in enumerate([texts[0], *texts]):
            page = browser.new_page()
            page.goto(address)
            page.locator("#examples button").first.wait_for()
            times = page.evaluate(_TRANSLATE, text)
            page.locator("#intact .cell[data-row='1'][data-column='1']").click()
            times.append(page.evaluate(_CHANGE))
            page.close()
            if number:
                for name, milliseconds in zip(_STEPS, times, strict=True):
                    seconds_of[name].append(milliseconds / 1000)
    return seconds_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `benchmark lab`."""
    parser.add_argument("run", type=Path, help="a finished run")
    parser.add_argument("source", type=Path, help="file of sentences in its source language")
    parser.add_argument("--words", type=int, default=20, help="use sentences of this length (default: %(default)s)")
    parser.add_argument("--sentences", type=int, default=20, help="number of sentences (default: %(default)s)")


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Measures what the options ask for. Raises Mistake if they are not usable."""
    if not options.source.is_file():
        raise Mistake(f"File not found: {options.source}.")
    texts = [line for line in read_lines(options.source) if len(line.split()) == options.words][: options.sentences]
    if not texts:
        raise Mistake(f"{options.source} has no sentence of {options.words} words; choose another --words.")
    run_dir = named_run(options.run)
    RunDirectory(run_dir).require_finished()
    with tempfile.TemporaryDirectory() as folder, server(run_dir, Path(folder) / "log", "device=cpu") as ours:
        seconds = in_browser(ours.address, texts)
    return {"sentences": len(texts), "words": options.words, "seconds": seconds}


def table(record: dict[str, Any]) -> str:
    """The measurements as a Markdown table."""
    lines = [
        f"{record['sentences']} sentences of {record['words']} words; a change sets one weight to 0.",
        "",
        "| from the click to the | median | fastest to slowest |",
        "|---|---|---|",
    ]
    for name, seconds in record["seconds"].items():
        spread = f"{min(seconds):.2f} to {max(seconds):.2f} s"
        lines.append(f"| {_STEPS[name]} | {statistics.median(seconds):.2f} s | {spread} |")
    return "\n".join(lines)
