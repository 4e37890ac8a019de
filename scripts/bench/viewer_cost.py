"""The page of attention maps: its size, and how long a browser takes to open it and to change the sentence."""

import argparse
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from nmt.errors import Mistake
from nmt.maps.attention_map import BOS, EOS, AttentionMap, SentenceMaps
from nmt.pages.viewer import ViewedRun, write_viewer
from scripts.browsers import CHROMIUM

_SHOWN = "document.querySelector('#heat').getAttribute('aria-label')"
# The label is set with the drawing, which the browser paints in the next frame.
_PAINTED = "() => new Promise(resolve => requestAnimationFrame(() => setTimeout(resolve)))"
_SIZES = {"sentences": 100, "tokens": 60, "layers": 6, "heads": 8}


def made_up(sentences: int, tokens: int, layers: int, heads: int, seed: int = 1) -> Iterator[SentenceMaps]:
    """Sentences of `tokens` pieces on both sides, EOS included, with random peaked maps of all three sites."""
    draw = np.random.default_rng(seed)
    pieces = [f"▁{number}" for number in range(tokens - 1)]
    inputs, outputs = [BOS, *pieces], [*pieces, EOS]
    axes = {"encoder_self": (outputs, outputs), "decoder_self": (inputs, inputs), "cross": (inputs, outputs)}
    for line in range(1, sentences + 1):
        maps = []
        for site, (rows, columns) in axes.items():
            weights = draw.gamma(0.1, size=(layers, heads, tokens, tokens)).astype(np.float32) + 1e-6
            weights /= weights.sum(axis=-1, keepdims=True)
            maps.append(AttentionMap(site, weights, rows, outputs, columns))
        yield SentenceMaps(line, 1, pieces, pieces, maps)


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser that is closed at the end of the block. Raises Mistake if PATH has none."""
    browsers = [browser for name in CHROMIUM if (browser := shutil.which(name))]
    if not browsers:
        raise Mistake(f"No browser found on PATH; install one of {', '.join(CHROMIUM)}.")
    from playwright.sync_api import sync_playwright  # installed by the extra 'dev'

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browsers[0], args=["--no-sandbox"])
        yield browser
        browser.close()


def in_browser(path: Path, rounds: int) -> dict[str, list[float]]:
    """Seconds until the first map is drawn, and to draw that of another sentence. Raises the error of `chromium`."""
    opened, changed = [], []
    with chromium() as browser:
        for _ in range(rounds):
            page = browser.new_page()
            start = time.perf_counter()
            page.goto(path.as_uri())
            page.wait_for_selector("#heat[aria-label]")
            page.evaluate(_PAINTED)
            opened.append(time.perf_counter() - start)
            before = page.evaluate(_SHOWN)
            start = time.perf_counter()
            page.select_option("#sentence", index=1)
            page.wait_for_function(f"before => ({_SHOWN}) !== before", arg=before, polling=5)
            page.evaluate(_PAINTED)
            changed.append(time.perf_counter() - start)
            page.close()
    return {"open": opened, "change": changed}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `benchmark viewer`."""
    for name, default in (*_SIZES.items(), ("rounds", 5)):
        parser.add_argument(f"--{name}", type=int, default=default, help="default: %(default)s")


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Measures what the options ask for."""
    sizes = {name: getattr(options, name) for name in _SIZES}
    if min(*sizes.values(), options.tokens - 1, options.sentences - 1, options.rounds) < 1:
        raise Mistake(
            f"All sizes must be at least 1, --sentences and --tokens at least 2; got {sizes}, {options.rounds} rounds."
        )
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "viewer.html"
        write_viewer(page, [ViewedRun("random", made_up(**sizes))])
        return {**sizes, "page_bytes": page.stat().st_size, "seconds": in_browser(page, options.rounds)}


def table(record: dict[str, Any]) -> str:
    """The measurements as a Markdown table."""
    lines = [
        " x ".join(f"{record[name]} {name}" for name in _SIZES) + " x 3 sites",
        "",
        "| page | first map drawn, median | fastest to slowest | another sentence, median | fastest to slowest |",
        "|---|---|---|---|---|",
    ]
    cells = [f"{record['page_bytes'] / 1e6:.1f} MB"]
    for seconds in record["seconds"].values():
        cells += [f"{statistics.median(seconds):.2f} s", f"{min(seconds):.2f} to {max(seconds):.2f} s"]
    return "\n".join([*lines, f"| {' | '.join(cells)} |"])
