"""What the page that is one file costs: BLEU in float32 and int8, and time and memory in browsers.

  python -m scripts.studies.page_file runs/demo sample:test
  python -m scripts.studies.page_file en-vi data/flores/flores_dev --lines 200 --browsers chromium firefox

The first table has the size of the file and BLEU of its translations. Node.js runs the page's program.
"Equal" counts the translations that are the run's own, without a coverage penalty; the differences are between the two
log-probabilities of each reference piece, in nats.

The second table has the seconds from opening the file to the first translation, and the median seconds of a translation
of a sentence of about 20 words with a beam of 5, of a cell's new weight in the middle of its map, and of a word that is
blocked at every step, each until the result is on the screen. The seconds of CPU, which depend less on what else the
machine does, are those of all processes of the browser until a second after that. The memory is that of the browser at
the end. A browser has one processor core. Linux only; takes about five minutes.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from statistics import mean, median
from tempfile import TemporaryDirectory
from typing import NamedTuple

from nmt.data.corpus import corpus_files
from nmt.errors import Mistake
from nmt.evaluation.scores import corpus_scores, headline_metrics
from nmt.exports.page_export import OLDEST_NODE, QUANTIZATIONS, in_node, page_text, usable_node
from nmt.exports.page_file import PageRun, page_data
from nmt.exports.parity import compare, comparison_search
from nmt.runs.load import LoadedRun, load_run
from nmt.runs.search import build_translator
from nmt.tables import Cell, Table
from nmt.text import normalize
from nmt.text.lines import iter_lines
from scripts.browsers import BROWSERS, Browser
from scripts.mistakes import report_mistakes

_WORDS, _BEAM_SIZE = 20, 5
_SETTLED_SECONDS = 1.0
"""Animations and answers that arrive later also use CPU."""

# An answer is on the screen two frames after it is in the page. To look for it in every frame would use CPU.
_SHOWN = """
const frame = () => new Promise(requestAnimationFrame);
const shown = async (selector) => {
  await new Promise((resolve, reject) => {
    const observer = new MutationObserver(look);
    const late = setTimeout(() => reject(new Error(`${selector} did not appear`)), 300000);
    function look() {
      if (!document.querySelector(selector)) return;
      observer.disconnect();
      clearTimeout(late);
      resolve();
    }
    observer.observe(document, { subtree: true, childList: true, attributes: true });
    look();
  });
  await frame();
  await frame();
};
const began = performance.now();
"""
_TRANSLATED = "#results[aria-busy='false'] #intact .cell"
_CHANGED = "#results[aria-busy='false'] #changed .cell"
_SECONDS = "return (performance.now() - began) / 1000;"
_FIRST = f'{_SHOWN} await shown("{_TRANSLATED}");'
_TRANSLATE = f"""{_SHOWN}
document.querySelector("#text").value = given[0];
document.querySelector("#ask").requestSubmit();
await shown("{_TRANSLATED}"); {_SECONDS}
"""
_SELECT = """
const cells = [...document.querySelectorAll("#intact .cell")], last = cells[cells.length - 1].dataset;
const [row, column] = [last.row, last.column].map((number) => Math.floor(number / 2));
const cell = document.querySelector(`#intact .cell[data-row="${row}"][data-column="${column}"]`);
cell.dispatchEvent(new MouseEvent("click", { bubbles: true }));
"""
_WEIGH = f"""{_SHOWN}
const weight = document.querySelector("#weight");
weight.value = 1;
weight.dispatchEvent(new Event("change"));
await shown("{_CHANGED}"); {_SECONDS}
"""
_BLOCK = f"""{_SHOWN}
document.querySelector("#actions [aria-labelledby='of-onColumn'] button").click();
await shown("{_CHANGED}"); {_SECONDS}
"""
_REMOVE = f"""{_SHOWN}
document.querySelector("#changes button").click();
await shown("#results[aria-busy='false'] #changed[hidden]");
"""


def bleu(translations: Sequence[str], references: Sequence[str]) -> str:
    [score] = corpus_scores(translations, [references], {"BLEU": headline_metrics(tokenized=False)["BLEU"]})
    return score.figures()


def qualities(run: LoadedRun, node: str, sources: Sequence[str], references: Sequence[str]) -> Table:
    """BLEU of the page in each number format."""
    translator = build_translator([run], comparison_search(run), verbatim=True)
    run_translations = translator.translate([normalize(source) for source in sources])
    rows: list[list[Cell]] = [["run", "-", bleu(run_translations, references), "-", "-"]]
    for quantization in QUANTIZATIONS:
        data = page_data([PageRun("run", run)], quantization)
        page = in_node(PageRun("run", run), node, data)
        page_translations = page.translate(sources)
        parity = compare(run, page._replace(translate=lambda lines: [""] * len(lines)), sources, references)
        equal = sum(a == b for a, b in zip(run_translations, page_translations, strict=True))
        rows.append(
            [
                f"page, {quantization}",
                f"{len(page_text(data)) / 1e6:.2f}",
                bleu(page_translations, references),
                f"{equal} of {len(sources)}",
                f"{parity.largest_difference:.1e}, {parity.mean_difference:.1e}",
            ]
        )
    return Table(["", "MB", "BLEU", "equal", "largest and mean difference"], rows)


class Spent(NamedTuple):
    """Seconds until the result is shown, and seconds of CPU until the browser has settled."""

    elapsed: float
    cpu: float


def spent(browser: Browser, act: Callable[[], float | None]) -> Spent:
    """What an action takes; `act` may return the elapsed seconds as the page has measured them."""
    cpu, began = browser.cpu_seconds, time.monotonic()
    measured = act()
    elapsed = time.monotonic() - began if measured is None else measured
    time.sleep(_SETTLED_SECONDS)
    return Spent(elapsed, browser.cpu_seconds - cpu)


def costs(browser: Browser, file: Path, sentences: Sequence[str]) -> list[Cell]:
    """A row of the second table. The first sentence is not counted, because a browser compiles what runs often."""

    def opened() -> None:
        browser.open(f"{file.as_uri()}#beamSize={_BEAM_SIZE}")
        browser.run(_FIRST)

    time.sleep(_SETTLED_SECONDS)
    first = spent(browser, opened)
    costs_of_actions: dict[str, list[Spent]] = {_TRANSLATE: [], _WEIGH: [], _BLOCK: []}
    for sentence in sentences:
        costs_of_actions[_TRANSLATE].append(spent(browser, lambda: browser.run(_TRANSLATE, sentence)))  # noqa: B023
        for change in (_WEIGH, _BLOCK):
            browser.run(_SELECT)
            time.sleep(_SETTLED_SECONDS)
            costs_of_actions[change].append(spent(browser, lambda: browser.run(change)))  # noqa: B023
            browser.run(_REMOVE)
    medians = [
        Spent(*map(median, zip(*(repeats[1:] or repeats), strict=True))) for repeats in costs_of_actions.values()
    ]
    written = [f"{elapsed:.2f} s, {cpu:.2f} s CPU" for elapsed, cpu in (first, *medians)]
    return [browser.name, *written, f"{browser.memory:.0f} MiB", "; ".join(browser.faults()) or "none"]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", help="a finished run, or the name of an included one")
    parser.add_argument("corpus", help="a prefix of two aligned files, such as data/sample/test")
    parser.add_argument("--lines", type=int, default=None, help="number of pairs, from the first (default: all)")
    parser.add_argument("--browsers", nargs="*", default=["chromium"], choices=list(BROWSERS), metavar="NAME")
    parser.add_argument("--quantization", default="int8", choices=QUANTIZATIONS, help="in browsers (default: int8)")
    parser.add_argument("--sentences", type=int, default=6, help="number of sentences in browsers (default: 6)")
    parser.add_argument("--pictures", type=Path, help="a folder for a picture of the page in each browser")
    given = parser.parse_args(arguments)
    node = usable_node()
    if node is None:
        raise Mistake(f"This study needs Node.js {OLDEST_NODE} or newer to run the page's program: install it.")
    run = load_run(Path(given.run), "cpu")
    sources, references = (
        [*islice(iter_lines(path), given.lines)] for path in corpus_files(given.corpus, run.direction)
    )
    print(qualities(run, node, sources, references).markdown(), flush=True)
    nearest = sorted(sources, key=lambda line: abs(len(line.split()) - _WORDS))[: given.sentences]
    words = mean(len(line.split()) for line in nearest)
    rows = []
    with TemporaryDirectory() as name:
        file = Path(name) / "lab.html"
        file.write_text(page_text(page_data([PageRun("run", run)], given.quantization)), encoding="utf-8")
        for chosen in given.browsers:
            with BROWSERS[chosen]() as browser:
                rows.append(costs(browser, file, nearest))
                if given.pictures:
                    given.pictures.mkdir(parents=True, exist_ok=True)
                    (given.pictures / f"{chosen}.png").write_bytes(browser.picture())
    header = ["first translation", f"{words:.1f} words", "a cell's weight", "a blocked word", "memory"]
    if rows:
        print()
        print(Table([f"page, {given.quantization}", *header, "messages, requests"], rows).markdown())


if __name__ == "__main__":
    report_mistakes(main)
