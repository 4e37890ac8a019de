"""The attention viewer: a page that shows one or more runs, opens from disk and needs no network."""

import base64
import json
import logging
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from hashlib import blake2b
from itertools import count, islice
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import numpy as np
from jaxtyping import Float

from nmt.errors import Mistake
from nmt.files import atomic_folder, atomic_write
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
_MOST_IN_PAGE = 1000  # sentences; the page then has about 25 MB
_IN_SCRIPT = 50  # sentences
SENTENCES = "viewer_sentences"
"""The folder beside a page of many sentences."""
_SCRIPT = re.compile(r"\d+-\d+\.js", re.ASCII)
# JSON inside <script> must not contain an end tag or a comment; older browsers treat the last two as line ends.
_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


class ViewedRun(NamedTuple):
    """A run on the page; in a film, one validation of a training run."""

    name: str
    """The name on the page: the run's path, or 'step 400'."""
    sentences: Iterable[SentenceMaps]
    """The sentences, read once and one at a time. Line and rank identify the same sentence across runs."""
    number: int = 0
    """The number of sentences, if it is known; it decides whether the page contains them."""


def viewed_runs(folders: Sequence[MapFolder], lines: Sequence[int] | None = None) -> list[ViewedRun]:
    """Turns folders of maps into the runs of one page, with distinct names. Warns if a line differs between folders."""
    names = []
    for folder in folders:
        method = folder.manifest["made_from"].get("method")
        names.append(folder.origin if method is None else f"{folder.origin}, {str(method).replace('_', ' ')}")
    sources = [
        {entry["line"]: text_of(entry["source_pieces"]) for entry in folder.manifest["sentences"]} for folder in folders
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
    times = Counter(names)
    return [
        ViewedRun(
            f"{name} ({folder.path})" if times[name] > 1 else name,
            folder.sentences(lines),
            folder.number(folder.lines if lines is None else lines),
        )
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

    If there are more than a thousand sentences, their maps are in scripts in the folder viewer_sentences beside the
    page, which adds them as they are needed. Weights are rounded to multiples of 1/255, so a weight on the page is off
    by at most 0.002. Entropies are computed from the exact weights. Only one sentence is in memory at a time. Raises
    Mistake, and leaves no file, if there are no runs, if viewer_sentences has other files, if a run has no sentences,
    if a sentence has no maps, or if a weight is not in [0, 1]; ValueError if a run contains a sentence twice.
    """
    if not runs:
        raise Mistake("There are no runs to view; pass at least one run with its sentences.")
    template = (WEB / "viewer.html").read_text(encoding="utf-8")
    template = template.replace(_STYLE_HERE, (WEB / "style.css").read_text(encoding="utf-8"))
    before, after = template.replace(_SCRIPT_HERE, bundle(WEB / "viewer.js")).split(_DATA_HERE)
    in_page = sum(run.number for run in runs) <= _MOST_IN_PAGE
    with ExitStack() as stack:
        part = stack.enter_context(atomic_write(path))
        page = stack.enter_context(part.open("w", encoding="utf-8"))
        if in_page:
            page.write(before)
            entries = [_write_run(page, number, run) for number, run in enumerate(runs)]
            index: dict[str, Any] = {"scripts": None, "runs": entries}
        else:
            page.write(before.replace("script-src 'unsafe-inline'", "script-src 'unsafe-inline' 'self' file:"))
            _check_scripts(path.with_name(SENTENCES))
            folder = stack.enter_context(atomic_folder(path.with_name(SENTENCES), replace=True))
            index = {
                "scripts": {"folder": SENTENCES, "sentences": _IN_SCRIPT},
                "runs": [_write_scripts(folder, number, run) for number, run in enumerate(runs)],
            }
        page.write(f'<script type="application/json" id="index">{_json(index)}</script>\n')
        page.write(after)
    if in_page:
        remove_scripts(path.parent)


def _check_scripts(folder: Path) -> None:
    """Raises Mistake if the folder, which will be replaced, has more than scripts."""
    if folder.is_dir() and not folder.is_symlink():
        for file in sorted(folder.iterdir()):
            if not _SCRIPT.fullmatch(file.name):
                raise Mistake(
                    f"{folder} contains {file.name}, but the page replaces this folder: move that file elsewhere."
                )


def remove_scripts(folder: Path) -> None:
    """Deletes the scripts of an earlier, larger page in a folder, and nothing else."""
    scripts = folder / SENTENCES
    if scripts.is_dir() and not scripts.is_symlink():
        for file in scripts.iterdir():
            if _SCRIPT.fullmatch(file.name):
                file.unlink()
        if not any(scripts.iterdir()):
            scripts.rmdir()


def _json(content: object) -> str:
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character, escape in _ESCAPES.items():
        text = text.replace(character, escape)
    return text


def _write_run(page: TextIO, number: int, run: ViewedRun) -> dict[str, Any]:
    """Writes the weights of a run and returns its entry in the index."""
    entries: list[dict[str, Any]] = []
    for index, sentence in enumerate(_checked(run)):
        for item in sentence.maps:
            page.write(f'<script type="application/octet-stream" id="weights-{number}-{index}-{item.site}">')
            page.write(_packed(item, run.name, sentence.line))
            page.write("</script>\n")
        entries.append(_label(sentence) | _details(sentence))
    return {"name": run.name, "sentences": entries}


def _write_scripts(folder: Path, number: int, run: ViewedRun) -> dict[str, Any]:
    """Writes a run's sentences into scripts and returns its entry in the index."""
    labels, digests = list[dict[str, Any]](), list[str]()
    sentences = iter(_checked(run))
    for script in count():
        start, details = len(labels), []
        for sentence in islice(sentences, _IN_SCRIPT):
            labels.append(_label(sentence))
            weights = {item.site: _packed(item, run.name, sentence.line) for item in sentence.maps}
            details.append(_details(sentence) | {"weights": weights})
        if not details:
            break
        content = _json(details)
        # The page refuses a script of another page, which a later export may have put there.
        digests.append(blake2b(content.encode(), digest_size=8).hexdigest())
        text = f'addSentences({number},{start},"{digests[-1]}",{content});\n'
        (folder / f"{number}-{script}.js").write_text(text, encoding="utf-8")
    return {"name": run.name, "sentences": labels, "digests": digests}


def _checked(run: ViewedRun) -> Iterator[SentenceMaps]:
    """The sentences of a run. Raises whatever `write_viewer` says."""
    seen = set()
    for sentence in run.sentences:
        key = (sentence.line, sentence.rank)
        if key in seen:
            raise ValueError(f"Run '{run.name}' has line {key[0]}, rank {key[1]} twice; pass each sentence once.")
        seen.add(key)
        if not sentence.maps:
            raise Mistake(f"Line {sentence.line} of run '{run.name}' has no maps; leave out lines without maps.")
        yield sentence
    if not seen:
        raise Mistake(f"Run '{run.name}' has no sentences; pass at least one, or leave the run out.")


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


def _label(sentence: SentenceMaps) -> dict[str, Any]:
    """What the page needs of a sentence before its maps are shown."""
    text = text_of(sentence.source_pieces)
    return {
        "line": sentence.line,
        "rank": sentence.rank,
        "score": sentence.score,
        "text": text if len(text) <= _LABEL_WIDTH else f"{text[: _LABEL_WIDTH - 2].rstrip()} …",
    }


def _details(sentence: SentenceMaps) -> dict[str, Any]:
    """The labels and entropies of a sentence. Sites refer to labels by number, because they share most of them."""
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
    return {"sequences": sequences, "sites": sites}


def _rounded(array: Float[np.ndarray, "..."], digits: int) -> list[Any]:
    """Nested lists of short numbers, with None for NaN."""
    boxed = np.round(array.astype(np.float64), digits).astype(object)
    boxed[np.isnan(array)] = None
    return boxed.tolist()
