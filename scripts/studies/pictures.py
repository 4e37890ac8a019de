"""Every picture of the documents, made again: trains the models that they show, and draws.

  python -m scripts.studies.pictures                  all of them, hours on a CPU
  python -m scripts.studies.pictures map lab --out DIR

Models are trained to runs/pictures with seed 1 (--runs DIR: elsewhere). Finished ones are kept and stopped ones
resumed, so after Ctrl-C the same command continues; delete a run to train it again. Each command is printed before it
runs.
"""

import argparse
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from nmt.data.corpus import corpus_files
from nmt.errors import Mistake
from nmt.runs.directory import RunDirectory
from nmt.text.lines import read_lines
from scripts.browsers import CHROMIUM
from scripts.mistakes import report_mistakes
from scripts.server import server
from scripts.studies.contrastive_test import CORPUS as CONTRAST
from scripts.studies.diagrams import IMAGES
from scripts.studies.document_models import DIRECTION

CATS = ("--source", "These two cats are very cute.", "--target", "Hai con mèo này rất dễ thương.")
SCORERS = ["additive", "concat", "dot", "scaled_dot", "general", "location", "gaussian", "gaussian_learned", "none"]
MODELS: Mapping[str, Sequence[str]] = {
    **{scorer: ["model=luong", f"scorer={scorer}"] for scorer in SCORERS},
    "local_m": ["model=luong", "window=local_m", "window.half_width=2"],
    "local_p": ["model=luong", "window=local_p", "window.half_width=2"],
    "sparsemax": ["model=luong", "normalizer=sparsemax"],
    "lstmn": ["model=luong", "encoder@model=lstmn", "scorer@encoder_self=additive"],
    "sentences": ["data=documents", "trainer.max_steps=1200"],
    "documents": [
        "data=documents",
        "context=hierarchical",
        "batching.batch_tokens=3072",
        "optimizer.lr=1e-3",
        "trainer.max_steps=500",
        "validation.every=200",
    ],
}
"""The overrides of nmt.train. "documents" starts from "sentences"."""


class Maker:
    """Trains the missing runs and writes pictures."""

    def __init__(self, runs: Path, out: Path) -> None:
        self.runs, self.out = runs, out

    def command(self, *words: str) -> None:
        print(f"python -m {shlex.join(words)}", file=sys.stderr)
        done = subprocess.run([sys.executable, "-m", *words], stdout=subprocess.DEVNULL)
        if done.returncode:
            sys.exit(done.returncode)

    def run(self, name: str) -> str:
        """The folder of a trained model."""
        folder = self.runs / name
        if not RunDirectory(folder).finished:
            start = [f"start_from={self.run('sentences')}"] if name == "documents" else []
            self.command("nmt.train", *MODELS[name], *start, "seed=1", f"run_dir={folder}", "resume=auto")
        return str(folder)

    def gallery(self, picture: str, panels: Mapping[str, str]) -> None:
        """The maps of several runs on the same pair of sentences; a panel's title, and its run."""
        runs = [f"{title}={self.run(name)}" for title, name in panels.items()]
        self.command("scripts.studies.map_gallery", "--out", str(self.out / picture), *CATS, *runs)

    def exported(self, picture: str, run: str, text: str, line: int, site: str, *overrides: str) -> None:
        """A picture that nmt.export_attention makes of a line of a text."""
        with TemporaryDirectory() as name:
            source, maps = Path(name) / "in.en", Path(name) / "maps"
            source.write_text(text, encoding="utf-8")
            shown = (f"site={site}", "formats=[png]", "width=5", *overrides)
            self.command("nmt.export_attention", f"run_dir={self.run(run)}", f"input={source}", f"out={maps}", *shown)
            [drawn] = maps.glob(f"pictures/{line:05}.*.png")
            (self.out / picture).write_bytes(drawn.read_bytes())

    def lab(self) -> None:
        """The page with the included model, after the verb of its first sentence was blocked."""
        # Playwright is an extra.
        from playwright.sync_api import sync_playwright

        with TemporaryDirectory() as name, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium_path(), args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": 1280, "height": 720}, locale="en")
            with server(Path("en-vi,vi-en"), Path(name) / "log") as started:  # as make lab does
                page.goto(started.address)
                page.locator("#results[aria-busy='false'] #intact .cell").first.wait_for(timeout=600_000)
                columns = page.locator("#intact text[data-column] title").all_text_contents()
                rows = page.locator("#intact text[data-row] title").all_text_contents()
                cell = f"[data-row='{rows.index('mở')}'][data-column='{columns.index('opened')}']"
                page.locator(f"#intact .cell{cell}").click()
                page.get_by_role("button", name="Block at every step", exact=True).click()
                page.locator("#results[aria-busy='false'] #changed .cell").first.wait_for(timeout=600_000)
                page.locator("#intact").hover(position={"x": 1, "y": 1})
                page.screenshot(path=self.out / "lab.png")


def chromium_path() -> str:
    """Raises Mistake if there is no Chromium."""
    path = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if path is None:
        raise Mistake(f"The picture lab needs one of {', '.join(CHROMIUM)} on the PATH: install it, or leave lab out.")
    return path


def documents(maker: Maker) -> None:
    """The first four lines of the documents in contrast are one document, which ends with a pronoun."""
    text = "".join(f"{line}\n" for line in read_lines(corpus_files(CONTRAST, DIRECTION)[0])[:4])
    with TemporaryDirectory() as name:
        boundaries = Path(name) / "in.doc"
        boundaries.write_text("a\n" * 4, encoding="utf-8")
        maker.exported("documents.png", "documents", text, 4, "decoder_sentences", f"documents={boundaries}")


def study(name: str) -> Callable[[Maker], None]:
    return lambda maker: maker.command(f"scripts.studies.{name}", "--out", str(maker.out / f"{name}.png"))


PICTURES: Mapping[str, Callable[[Maker], None]] = {
    "diagrams": lambda maker: maker.command("scripts.studies.diagrams", "--out", str(maker.out)),
    "kernel_regression": study("kernel_regression"),
    "factorization_machine": study("factorization_machine"),
    "document_classifier": study("document_classifier"),
    "lab": Maker.lab,
    "map": lambda maker: maker.exported(
        "map.png", "general", "That new key is next to that crowded supermarket.\n", 1, "cross"
    ),
    "lstmn": lambda maker: maker.exported(
        "lstmn.png", "lstmn", "They returned to the theatre because they were very angry.\n", 1, "encoder_self"
    ),
    "windows": lambda maker: maker.gallery(
        "windows.png", {"global": "general", **{name: name for name in ("local_m", "local_p", "sparsemax")}}
    ),
    "documents": documents,
    "scorers": lambda maker: maker.gallery("scorers.png", {name: name for name in SCORERS}),
}
"""What makes each picture, or all drawings, the fastest first."""


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which ones: {', '.join(PICTURES)} (default: all)")
    parser.add_argument("--out", type=Path, default=IMAGES, help="folder to write to (default: docs/images)")
    parser.add_argument("--runs", type=Path, default=Path("runs/pictures"), help="default: %(default)s")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.names if name not in PICTURES]
    if unknown:
        raise Mistake(f"There is no picture {', '.join(unknown)}: choose from {', '.join(PICTURES)}.")
    options.out.mkdir(parents=True, exist_ok=True)
    maker = Maker(options.runs, options.out)
    for name in options.names or PICTURES:
        PICTURES[name](maker)
        print(name)


if __name__ == "__main__":
    report_mistakes(main)
