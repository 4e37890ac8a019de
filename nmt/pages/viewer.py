"""The attention viewer: a page that shows one or more runs, opens from disk and needs no network."""

import base64
import json
import logging
import textwrap
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import numpy as np
from jaxtyping import Float

from nmt.errors import Mistake
from nmt.files import atomic_write
from nmt.maps.attention_map import AttentionMap, SentenceMaps
from nmt.maps.diagnostics import head_entropies
from nmt.maps.drawing import Drawing, draw_pictures, draw_tables
from nmt.maps.map_files import MapFolder
from nmt.maps.words import text_of
from nmt.pages.bundle import WEB, bundle

logger = logging.getLogger(__name__)

_STYLE_HERE, _SCRIPT_HERE, _DATA_HERE = "<!-- STYLE -->", "<!-- SCRIPT -->", "<!-- DATA -->"
_STEPS = 255
# Rounding in bfloat16 or over a long sum can raise a weight above 1.
_SLACK = 0.01
_LABEL_WIDTH = 60
# JSON inside <script> must not contain an end tag or a comment; older browsers treat the last two as line ends.
_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


class ViewedRun(NamedTuple):
    """A run on the page; in a film, one validation of a training run."""

    name: str
    """The name on the page: the run's path, or 'step 400'."""
    sentences: Iterable[SentenceMaps]
    """The sentences, read once and one at a time. Line and rank identify the same sentence across runs."""


def viewed_runs(folders: Sequence[MapFolder], lines: Sequence[int] | None = None) -> list[ViewedRun]:
    """Turns folders of maps into the runs of one page, with distinct names. Warns if a line differs between folders."""
    names = []
    for folder in folders:
        method = folder.manifest["made_from"].get("method")
        names.append(folder.origin if method is None else f"{folder.origin}, {str(method).replace('_', ' ')}")
    sources = [
        {entry["line"]: "".join(entry["source_pieces"]) for entry in folder.manifest["sentences"]} for folder in folders
    ]
    for folder, texts in zip(folders[1:], sources[1:], strict=True):
        differing = [line for line, text in texts.items() if sources[0].get(line, text) != text]
        if differing:
            logger.warning(
                "Line %d of %s differs from line %d of %s; the page shows them side by side.",
                differing[0],
                folder.path,
                differing[0],
                folders[0].path,
            )
    count = Counter(names)
    return [
        ViewedRun(f"{name} ({folder.path})" if count[name] > 1 else name, folder.sentences(lines))
        for name, folder in zip(names, folders, strict=True)
    ]


def draw_formats(folder: MapFolder, drawing: Drawing, out: Path, lines: Sequence[int] | None = None) -> Iterator[str]:
    """Writes the chosen formats for all lines or the given ones, and yields the text to print: the paths and a table.

    Alignments always cover all lines. Raises Mistake if a line has no maps, and if no picture can be drawn.
    """
    wanted = folder.lines if lines is None else lines
    yield from draw_tables(folder, drawing, out, wanted)
    if "viewer" in drawing.formats:
        write_viewer(out / "viewer.html", viewed_runs([folder], wanted))
        yield str(out / "viewer.html")
    # Pictures come last, because drawing them fails if the width is too small for every picture.
    yield from draw_pictures(folder, drawing, out, wanted)


def write_viewer(path: Path, runs: Sequence[ViewedRun]) -> None:
    """Writes the page that shows every sentence, site, layer and head of the runs.

    Weights are rounded to multiples of 1/255, so a weight on the page is off by at most 0.002. Entropies are computed
    from the exact weights. Only one sentence is in memory at a time. Raises Mistake, and leaves no file, if there
    are no runs, if a run has no sentences, if a sentence has no maps, or if a weight is not in [0, 1]; ValueError if a
    run contains a sentence twice.
    """
    if not runs:
        raise Mistake("There are no runs to view; pass at least one run with its sentences.")
    template = (WEB / "viewer.html").read_text(encoding="utf-8")
    template = template.replace(_STYLE_HERE, (WEB / "style.css").read_text(encoding="utf-8"))
    before, after = template.replace(_SCRIPT_HERE, bundle(WEB / "viewer.js")).split(_DATA_HERE)
    with atomic_write(path) as part, part.open("w", encoding="utf-8") as page:
        page.write(before)
        index = {"runs": [_write_run(page, number, run) for number, run in enumerate(runs)]}
        text = json.dumps(index, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        for character, escape in _ESCAPES.items():
            text = text.replace(character, escape)
        page.write(f'<script type="application/json" id="index">{text}</script>\n')
        page.write(after)


def _write_run(page: TextIO, number: int, run: ViewedRun) -> dict[str, Any]:
    """Writes the weights of a run and returns its entry in the index."""
    entries: list[dict[str, Any]] = []
    seen = set()
    for index, sentence in enumerate(run.sentences):
        key = (sentence.line, sentence.rank)
        if key in seen:
            raise ValueError(f"Run '{run.name}' has line {key[0]}, rank {key[1]} twice; pass each sentence once.")
        seen.add(key)
        if not sentence.maps:
            raise Mistake(f"Line {sentence.line} of run '{run.name}' has no maps; leave out lines without maps.")
        for item in sentence.maps:
            page.write(f'<script type="application/octet-stream" id="weights-{number}-{index}-{item.site}">')
            page.write(_packed(item, run.name, sentence.line))
            page.write("</script>\n")
        entries.append(_entry(sentence))
    if not entries:
        raise Mistake(f"Run '{run.name}' has no sentences; pass at least one, or leave the run out.")
    return {"name": run.name, "sentences": entries}


def _packed(item: AttentionMap, run: str, line: int) -> str:
    """The weights as bytes in C order, deflated without a header, in base64."""
    low, high = item.weights.min(initial=0), item.weights.max(initial=0)
    if not (low >= 0 and high <= 1 + _SLACK):
        raise Mistake(
            f"The weights of line {line} of run '{run}' at {item.site} range from {low:g} to {high:g}; the viewer "
            "shows weights from 0 to 1, so pass normalized weights, not scores."
        )
    steps = np.rint(item.weights.clip(0, 1) * _STEPS).astype(np.uint8)
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return base64.b64encode(packer.compress(steps.tobytes()) + packer.flush()).decode("ascii")


def _entry(sentence: SentenceMaps) -> dict[str, Any]:
    """A sentence's entry in the index. Its sites refer to their labels by number, because they share most of them."""
    sequences: list[list[str]] = []

    def number(labels: list[str]) -> int:
        if labels not in sequences:
            sequences.append(labels)
        return sequences.index(labels)

    sites = {
        item.site: {
            "layers": item.weights.shape[0],
            "heads": item.weights.shape[1],
            "inputs": number(item.inputs),
            "outputs": number(item.outputs),
            "columns": number(item.columns),
            "entropy": _rounded(head_entropies(item.weights), 3),
            "center": None if item.local is None else _rounded(item.local.center, 2),
        }
        for item in sentence.maps
    }
    rank = f" (translation {sentence.rank})" if sentence.rank > 1 else ""
    text = textwrap.shorten(text_of(sentence.source_pieces), _LABEL_WIDTH, placeholder=" …")
    return {
        "line": sentence.line,
        "rank": sentence.rank,
        "score": sentence.score,
        "label": f"{sentence.line}{rank}: {text}",
        "sequences": sequences,
        "sites": sites,
    }


def _rounded(array: Float[np.ndarray, "..."], digits: int) -> list[Any]:
    """Nested lists of short numbers, with None for NaN."""
    boxed = np.round(array.astype(np.float64), digits).astype(object)
    boxed[np.isnan(array)] = None
    return boxed.tolist()
