"""The attention viewer: runs and their maps as one page that opens from disk and asks nothing of a network."""

import base64
import json
import os
import textwrap
import zlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import numpy as np
from jaxtyping import Float

from nmt.maps.attention_map import AttentionMap, LocalWindow, SentenceMaps
from nmt.maps.diagnostics import head_entropies
from nmt.maps.words import merge_pieces, text_of

_PAGE = Path(__file__).with_name("viewer_page")
# One scope, in the order in which a browser reads them.
_SCRIPTS = ("data", "view", "panel", "heat_map", "controls", "start")
_STYLE_HERE, _SCRIPT_HERE, _DATA_HERE = "<!-- STYLE -->", "<!-- SCRIPT -->", "<!-- DATA -->"
_STEPS = 255
# What bf16 or a long sum may add to 1.
_SLACK = 0.01
_LABEL_WIDTH = 60
# Inside <script>, JSON may not spell an end tag or a comment; JavaScript once read the last two as line ends.
_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


class ViewedRun(NamedTuple):
    """A run to look at, or one moment of a run: then the runs are the frames of a film."""

    name: str
    """What the viewer calls it: the run's path, or 'step 400'."""
    sentences: Iterable[SentenceMaps]
    """Read once, one after the other. Sentences of different runs belong together by line and rank."""


def write_viewer(path: Path, runs: Sequence[ViewedRun]) -> None:
    """Write the page that shows every sentence, site, layer and head of the runs.

    Weights are stored in steps of 1/255, so a shown weight is off by at most 0.002, 0 stays exactly 0, and less than
    0.002 becomes 0. Entropies are those of the exact weights. One sentence is in memory at a time. Raises ValueError,
    and leaves no file, when there is no run, when a run has no sentences or one of them twice, when a sentence has no
    maps, and for weights outside 0 to 1.
    """
    if not runs:
        raise ValueError("There are 0 runs to view; give at least one run with its sentences.")
    before, after = _page().split(_DATA_HERE)
    part = path.with_name(path.name + ".part")
    try:
        with part.open("w", encoding="utf-8") as page:
            page.write(before)
            index = {"runs": [_write_run(page, number, run) for number, run in enumerate(runs)]}
            page.write(f'<script type="application/json" id="index">{_json(index)}</script>\n')
            page.write(after)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def _page() -> str:
    """The page without data: its style and scripts put into one file."""
    page = (_PAGE / "page.html").read_text(encoding="utf-8")
    style = (_PAGE / "style.css").read_text(encoding="utf-8")
    scripts = "\n".join((_PAGE / f"{name}.js").read_text(encoding="utf-8") for name in _SCRIPTS)
    return page.replace(_STYLE_HERE, style).replace(_SCRIPT_HERE, scripts)


def _write_run(page: TextIO, number: int, run: ViewedRun) -> dict[str, Any]:
    """Write the weights of a run, and return its part of the index."""
    entries: list[dict[str, Any]] = []
    seen = set()
    for place, sentence in enumerate(_some(run)):
        key = (sentence.line, sentence.rank)
        if key in seen:
            raise ValueError(f"Run '{run.name}' has line {key[0]}, rank {key[1]} twice; give each sentence once.")
        seen.add(key)
        for item in sentence.maps:
            page.write(f'<script type="application/octet-stream" id="weights-{number}-{place}-{item.site}">')
            page.write(_packed(item, run.name, sentence.line))
            page.write("</script>\n")
        entries.append(_entry(sentence, run.name))
    return {"name": run.name, "sentences": entries}


def _some(run: ViewedRun) -> Iterator[SentenceMaps]:
    sentences = iter(run.sentences)
    try:
        return chain([next(sentences)], sentences)
    except StopIteration:
        raise ValueError(f"Run '{run.name}' has 0 sentences; give at least one, or leave the run out.") from None


def _packed(item: AttentionMap, run: str, line: int) -> str:
    """The weights as bytes in C order, deflated without a header, in base64."""
    low, high = item.weights.min(initial=0), item.weights.max(initial=0)
    if not (low >= 0 and high <= 1 + _SLACK):
        raise ValueError(
            f"The weights of line {line} of run '{run}' at {item.site} go from {low:g} to {high:g}; the viewer shows "
            "weights from 0 to 1, so give those after the normaliser."
        )
    steps = np.rint(item.weights.clip(0, 1) * _STEPS).astype(np.uint8)
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return base64.b64encode(packer.compress(steps.tobytes()) + packer.flush()).decode("ascii")


def _entry(sentence: SentenceMaps, run: str) -> dict[str, Any]:
    """What the index says of a sentence. Rows and columns of its sites are numbers of its label sequences."""
    if not sentence.maps:
        raise ValueError(f"Line {sentence.line} of run '{run}' has 0 maps; leave out what has no attention.")
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
            "center": _centers(item.local),
        }
        for item in sentence.maps
    }
    return {
        "line": sentence.line,
        "rank": sentence.rank,
        "score": sentence.score,
        "label": _label(sentence),
        "sequences": [{"pieces": labels, "words": merge_pieces(labels)} for labels in sequences],
        "sites": sites,
    }


def _label(sentence: SentenceMaps) -> str:
    rank = f" (translation {sentence.rank})" if sentence.rank > 1 else ""
    return f"{sentence.line}{rank}: {textwrap.shorten(text_of(sentence.source_pieces), _LABEL_WIDTH, placeholder=' …')}"


def _centers(local: LocalWindow | None) -> list[Any] | None:
    return None if local is None else _rounded(local.center, 2)


def _rounded(array: Float[np.ndarray, "..."], digits: int) -> list[Any]:
    """Nested lists of short numbers, with None for NaN."""
    boxed = np.round(array.astype(np.float64), digits).astype(object)
    boxed[np.isnan(array)] = None
    return boxed.tolist()


def _json(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character, escape in _ESCAPES.items():
        text = text.replace(character, escape)
    return text
