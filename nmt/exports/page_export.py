"""A page that is one file: the lab with models inside, which translate in the browser without a server."""

import base64
import json
import logging
import math
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nmt.data.corpus import Pairs
from nmt.errors import Mistake
from nmt.exports.page_file import PageRun, page_data
from nmt.exports.parity import Exported, Parity, compare
from nmt.files import atomic_write, remove_abandoned_parts
from nmt.names import distinct_names
from nmt.pages.bundle import WEB, bundle
from nmt.paths import check_name, check_writable, real_path
from nmt.runs.load import LoadedRun

logger = logging.getLogger(__name__)

QUANTIZATIONS = ("float32", "int8")
MOST_RUNS = 4
MOST_BYTES = 150_000_000
"""A larger page takes a browser more than a gigabyte of memory."""
_COMPARED = 20
"""Number of sentence pairs on which the page's program is compared with the run; a pair takes seconds."""

# The page makes no request, and the browser holds it to that. WebAssembly multiplies its matrices.
_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' 'wasm-unsafe-eval' blob:; worker-src blob:; "
    "style-src 'unsafe-inline'; img-src data: blob:"
)
_STYLES = ("style.css", "lab.css")
_CHARSET = '<meta charset="utf-8">'
_MADE_BY = '<meta name="generator" content="nmt.export">'
OLDEST_NODE = 18
"""The first version of Node.js that has Blob and DecompressionStream."""
_DRIVER = WEB / "engine" / "driver.mjs"
_HEAD_BYTES = 1000


def worker_program() -> str:
    """The program of the page's Web Worker."""
    return bundle(WEB / "engine" / "compute.js")


def check_page(out: Path, overwrite: bool, quantization: str, runs: Sequence[str]) -> None:
    """Raises Mistake unless the page can be written to `out`, and hold so many runs in this number format."""
    if len(runs) > MOST_RUNS:
        raise Mistake(
            f"run_dirs names {len(runs)} runs, but a page holds at most {MOST_RUNS}, because a browser keeps all of "
            f"them in memory: name fewer, or use python -m nmt.serve 'run_dirs=[{','.join(runs)}]' instead."
        )
    check_writable("out", out.parent)
    check_name("out", out)
    if quantization not in QUANTIZATIONS:
        raise Mistake(f"quantization is {quantization}, but with format=page it must be {' or '.join(QUANTIZATIONS)}.")
    if out.is_symlink():
        raise Mistake(f"out is {out}, which is a symbolic link to {real_path(out)}: name the file itself.")
    if out.is_dir():
        raise Mistake(f"out is {out}, which is a folder, but format=page writes one file: name an HTML file.")
    if out.exists() and not out.is_file():
        raise Mistake(f"out is {out}, which is a device or a pipe, but format=page writes one file: name an HTML file.")
    if out.suffix not in (".html", ".htm"):
        raise Mistake(f"out is {out}, but format=page writes one file: name it, such as {out.with_suffix('.html')}.")
    if not out.exists():
        return
    with out.open("rb") as file:
        if _MADE_BY.encode() not in file.read(_HEAD_BYTES):
            raise Mistake(f"out is {out}, which exists and is not an exported page: choose another file.")
    if not overwrite:
        raise Mistake(f"out is {out}, which exists: choose another file, or overwrite=true to replace it.")


def export_page(
    runs: Sequence[LoadedRun], out: Path, quantization: str, *, node: str | None, pairs: Sequence[Pairs]
) -> list[str]:
    """Writes the page to `out`, and says how closely its program matches each run on its sentence pairs.

    `node`, from `usable_node`, runs that program; if it is None, the page is written unchecked, with a warning, and
    `pairs` are not used. Raises Mistake if the page does not support a run or becomes too large, and CheckFailed if a
    run differs. In each case `out` is left unchanged.
    """
    # A name of a folder need not be valid UTF-8.
    names = [
        os.fsencode(name).decode(errors="replace") for name in distinct_names([run.directory.path for run in runs])
    ]
    named = [PageRun(name, run) for name, run in zip(names, runs, strict=True)]
    data = page_data(named, quantization)
    text = page_text(data)
    number_of_bytes = len(text.encode())
    if number_of_bytes > MOST_BYTES:
        remedies = ["leave out a run"] if len(runs) > 1 else []
        remedies += ["add quantization=int8"] if quantization != "int8" else []
        folders = ",".join(str(run.directory.path) for run in runs)
        remedies.append(f"use python -m nmt.serve 'run_dirs=[{folders}]' instead")
        raise Mistake(
            f"The page would be {number_of_bytes / 1e6:.0f} MB, but it may be at most {MOST_BYTES / 1e6:.0f} MB, "
            f"because a browser needs several times as much memory to open it: {', or '.join(remedies)}."
        )
    out.parent.mkdir(parents=True, exist_ok=True)
    remove_abandoned_parts(out.parent, out.name)
    with atomic_write(out) as part:
        part.write_text(text, encoding="utf-8")
        parities = []
        if node is None:
            logger.warning(
                "Node.js %d or newer is not installed, so the page was not compared with the run: try a few sentences "
                "in it.",
                OLDEST_NODE,
            )
        else:
            for run, run_pairs in zip(named, pairs, strict=True):
                parities.append(_parity(run, run_pairs, node=node, data=data, quantization=quantization))
    size = f"The page is {out.stat().st_size / 1e6:.1f} MB"
    if not parities:
        return [f"{size}; it was not compared with the {'runs' if len(runs) > 1 else 'run'}."]
    if len(runs) == 1:
        return [f"{parities[0]} {size}."]
    return [*(f"{name}: {parity}" for name, parity in zip(names, parities, strict=True)), f"{size}."]


def page_text(data: bytes) -> str:
    """The page around what `page_data` made."""
    page = (WEB / "lab.html").read_text(encoding="utf-8")
    for style in _STYLES:
        sheet = (WEB / style).read_text(encoding="utf-8")
        page = _replaced(page, f'<link rel="stylesheet" href="page/{style}">', f"<style>\n{sheet}</style>")
    lab = bundle(WEB / "lab.js", {WEB / "engine" / "http.js": WEB / "engine" / "worker.js"})
    parts = [
        f'<script type="text/plain" id="engine">\n{worker_program()}</script>',
        f'<script type="text/plain" id="runs">{base64.b64encode(data).decode("ascii")}</script>',
        f'<script type="module">\n{lab}</script>',
    ]
    page = _replaced(page, '<script type="module" src="page/lab.js"></script>', "\n".join(parts))
    policy = f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
    return _replaced(page, _CHARSET, f"{_CHARSET}\n{_MADE_BY}\n{policy}")


def _replaced(page: str, old: str, new: str) -> str:
    if page.count(old) != 1:
        raise ValueError(f"lab.html has {old} {page.count(old)} times, not once.")
    return page.replace(old, new)


def usable_node() -> str | None:
    """The path of Node.js if the installed version can run the page's program, otherwise None."""
    node = shutil.which("node")
    return node if node is not None and _is_new_enough(node) else None


def _parity(named: PageRun, pairs: Pairs, *, node: str, data: bytes, quantization: str) -> Parity:
    """How closely the page's program matches a run."""
    parity = compare(named.run, in_node(named, node, data), pairs.source[:_COMPARED], pairs.target[:_COMPARED])
    parity.check(quantization)
    return parity


def _is_new_enough(node: str) -> bool:
    """Whether this Node.js, which prints a version such as v20.20.2, can run the page's program."""
    printed = subprocess.run([node, "--version"], capture_output=True, encoding="utf-8", check=False).stdout
    version = re.match(r"v(\d+)\.", printed)
    return version is not None and int(version[1]) >= OLDEST_NODE


def answers_in_node(node: str, data: bytes, questions: Sequence[tuple[str, Mapping[str, Any]]]) -> list[Any]:
    """What the page's program answers to questions (method, question) about the runs of `page_data`."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "program.js").write_text(worker_program(), encoding="utf-8")
        (folder / "runs").write_bytes(data)
        (folder / "questions.json").write_text(json.dumps(questions), encoding="utf-8")
        files = [folder / file for file in ("program.js", "runs", "questions.json")]
        ended = subprocess.run([node, _DRIVER, *files], capture_output=True, encoding="utf-8", check=False)
    if ended.returncode:
        raise RuntimeError(f"The page's program failed in Node.js: {ended.stderr}")
    answers: list[Any] = json.loads(ended.stdout)
    return answers


def in_node(named: PageRun, node: str, data: bytes) -> Exported:
    """A run of `page_data` as the page's program computes it."""

    def asked(method: str, questions: Sequence[Mapping[str, Any]]) -> list[Any]:
        return answers_in_node(node, data, [(method, {"run": named.name, **one}) for one in questions])

    def forced_log_probs(sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[list[float]]:
        pairs = zip(sources, targets, strict=True)
        rows = asked("score", [{"source_ids": [*source], "target_ids": [*target]} for source, target in pairs])
        # JSON has no NaN: JavaScript writes null.
        return [[math.nan if value is None else value for value in row] for row in rows]

    def translate(lines: Sequence[str]) -> list[str]:
        # The search that a page has is the run's own, or the default one; comparison_search changes only this of it.
        texts = [line for line in lines if line]  # a page translates an empty line without asking the model
        answers = asked("hypotheses", [{"text": text, "settings": {"coverage_penalty": 0.0}} for text in texts])
        translations = iter(answers)
        return [next(translations)[0]["text"] if line else "" for line in lines]

    return Exported(named.run.model.max_source, named.run.model.max_target, forced_log_probs, translate)
