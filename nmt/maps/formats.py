"""From a folder of attention maps to what people look at: pictures, tables, alignments, diagnostics, a page."""

import csv
import logging
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from nmt.maps.attention_map import selected
from nmt.maps.diagnostics import Measures, Row, of_choice, per_head, per_sentence, worst_first
from nmt.maps.drawing import ALL, PICTURES, Drawing
from nmt.maps.folders import viewed_runs
from nmt.maps.links import chosen_map
from nmt.maps.map_files import MapFolder, file_stem
from nmt.maps.plots import Look, Picture, heat_map, heat_map_grid
from nmt.maps.symmetrization import LINKS, all_links, pharaoh
from nmt.maps.viewer import write_viewer
from nmt.maps.words import LabelledMap, labelled, spaced
from nmt.pace import Pace
from nmt.tables import Table

logger = logging.getLogger(__name__)

_DECIMALS = 6
_MEASURED = ["site", "layer", "head", *Measures._fields, "dead"]
_TEXTS = ("source.txt", "target.txt")
LEFT_OUT = "left_out.csv"
_FILES = ("diagnostics.csv", "sentence_diagnostics.csv", "heads.csv", "viewer.html", LEFT_OUT)
_FOLDERS = {
    "pictures": re.compile(r"\d{5,}(-\d+)?\.\w+(\.grid|(\.layer\d+)?(\.head\d+)?)\.(png|svg|pdf)", re.ASCII),
    "csv": re.compile(r"\d{5,}(-\d+)?\.csv", re.ASCII),
    "alignments": re.compile("|".join(re.escape(name) for name in (*_TEXTS, *(f"{name}.align" for name in LINKS)))),
}


def draw(folder: MapFolder, drawing: Drawing, out: Path, lines: Sequence[int] | None = None) -> Iterator[str]:
    """Makes the formats of the maps of all lines, or of some; yields what there is to print: paths, and a table.

    Alignments are of all lines always. Raises ValueError for lines without maps, and where no picture can be drawn.
    """
    wanted = folder.lines if lines is None else lines
    if "csv" in drawing.formats:
        yield from _tables(folder, drawing, out, wanted)
    if "alignments" in drawing.formats:
        yield from _alignments(folder, drawing, out)
    if "diagnostics" in drawing.formats:
        yield from _diagnostics(folder, drawing, out, wanted)
    if "viewer" in drawing.formats:
        write_viewer(out / "viewer.html", viewed_runs([folder], wanted))
        yield str(out / "viewer.html")
    # The last: a width may be too small for any of them.
    if kinds := [kind for kind in PICTURES if kind in drawing.formats]:
        yield from _pictures(folder, drawing, out, wanted, kinds)


def clear(out: Path) -> None:
    """Deletes the files that are made of maps, by name, and folders that are empty then; nothing else."""
    for name in _FILES:
        (out / name).unlink(missing_ok=True)
    for name, pattern in _FOLDERS.items():
        for path in (out / name).glob("*"):
            if pattern.fullmatch(path.name):
                path.unlink()
        if (out / name).is_dir() and not any((out / name).iterdir()):
            (out / name).rmdir()


def _pictures(
    folder: MapFolder, drawing: Drawing, out: Path, lines: Sequence[int], kinds: Sequence[str]
) -> Iterator[str]:
    """Draws what can be drawn; of a file of lines a few may be too long for the page."""
    target = _folder(out, "pictures")
    pace, total = Pace("sentences drawn"), folder.number(lines)
    drawn, refused = 0, ""
    for sentence in folder.sentences(lines):
        for site in drawing.sites(item.site for item in sentence.maps):
            shown = labelled(sentence.site(site), drawing.row, words=drawing.words)
            look = partial(drawing.look, folder.manifest["sites"], site, sentence.line, sentence.rank)
            for parts, draw_it in _drawings(shown, drawing, look):
                name = ".".join([file_stem(sentence.line, sentence.rank), site, *parts])
                try:
                    picture = draw_it()
                except ValueError as error:
                    refused = str(error)
                    logger.warning("%s is not drawn: %s", name, error)
                    continue
                drawn += 1
                for kind in kinds:
                    picture.save(target / f"{name}.{kind}")
                    yield str(target / f"{name}.{kind}")
        pace(1, total)
    if not drawn:
        raise ValueError(f"No picture could be drawn. {refused}")


def _drawings(
    shown: LabelledMap, drawing: Drawing, look: Callable[[str], Look]
) -> Iterator[tuple[list[str], Callable[[], Picture]]]:
    """What to draw, with the parts that its file's name gets."""
    if drawing.grid:
        yield ["grid"], partial(heat_map_grid, shown.weights, shown.columns, shown.rows, look(""))
        return
    for layer, head in _places(shown.weights, drawing):
        parts = [f"{key}{value}" for key, value in (("layer", layer), ("head", head)) if value is not None]
        weights, of_this = selected(shown.weights, layer, head), look(_described(shown, layer, head))
        yield parts, partial(heat_map, weights, shown.columns, shown.rows, of_this)


def _described(shown: LabelledMap, layer: int | None, head: int | None) -> str:
    """', mean of 3 layers, head 1': nothing of what there is one of."""
    found = []
    for name, value, number in zip(("layer", "head"), (layer, head), shown.weights.shape[:2], strict=True):
        if number > 1:
            found.append(f"mean of {number} {name}s" if value is None else f"{name} {value} of 0 to {number - 1}")
    return "".join(f", {part}" for part in found)


def _places(weights: np.ndarray, drawing: Drawing) -> Iterator[tuple[int | None, int | None]]:
    """The chosen layers and heads, None for the mean."""
    layers, heads = weights.shape[:2]
    for layer in range(layers) if drawing.layer == ALL else [drawing.layer]:
        for head in range(heads) if drawing.head == ALL else [drawing.head]:
            yield layer, head


def _tables(folder: MapFolder, drawing: Drawing, out: Path, lines: Sequence[int]) -> Iterator[str]:
    target = _folder(out, "csv")
    pace, total = Pace("tables written"), folder.number(lines)
    for sentence in folder.sentences(lines):
        path = target / f"{file_stem(sentence.line, sentence.rank)}.csv"
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["site", "layer", "head", "row", "row_label", "column", "column_label", "weight"])
            for site in drawing.sites(item.site for item in sentence.maps):
                shown = labelled(sentence.site(site), drawing.row, words=drawing.words)
                writer.writerows(_cells(site, shown, drawing))
        yield str(path)
        pace(1, total)


def _cells(site: str, shown: LabelledMap, drawing: Drawing) -> Iterator[list[Any]]:
    for layer, head in _places(shown.weights, drawing):
        weights = selected(shown.weights, layer, head)
        place = [site, "mean" if layer is None else layer, "mean" if head is None else head]
        for row, row_label in enumerate(shown.rows):
            for column, column_label in enumerate(shown.columns):
                weight = round(float(weights[row, column]), _DECIMALS)
                yield [*place, row, row_label, column, column_label, weight]


def _alignments(folder: MapFolder, drawing: Drawing, out: Path) -> Iterator[str]:
    """The words and their links, a line for each line of the input (empty: without maps); of the first ranks."""
    found: dict[int, dict[str, str]] = {}
    for sentence in folder.sentences():
        if sentence.rank == 1:
            pieces = sentence.source_pieces, sentence.target_pieces
            words = chosen_map(sentence.site("cross").weights, *pieces, drawing.choice())
            links = all_links(words, float(drawing.threshold))
            found[sentence.line] = {f"{name}.align": pharaoh(links[name]) for name in LINKS}
            found[sentence.line] |= zip(_TEXTS, map(spaced, pieces), strict=True)
    target = _folder(out, "alignments")
    for name in (*_TEXTS, *(f"{name}.align" for name in LINKS)):
        lines = [found.get(line, {}).get(name, "") for line in range(1, folder.manifest["made_from"]["lines"] + 1)]
        path = target / name
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        yield str(path)


def _diagnostics(folder: MapFolder, drawing: Drawing, out: Path, lines: Sequence[int]) -> Iterator[str]:
    """By sentence of the drawn maps, by sentence and head of their sites, by head of all sites; the last is printed."""
    drawn: list[Row] = []
    every: list[Row] = []
    for sentence in folder.sentences(lines):
        every += per_sentence([sentence])
        for site in drawing.sites(item.site for item in sentence.maps):
            for layer, head in _places(sentence.site(site).weights, drawing):
                drawn.append(of_choice(sentence, site, layer, head))
    of_heads = [row for row in every if row.site in drawing.sites(folder.manifest["sites"])]
    for name, rows in (("sentence_diagnostics", drawn), ("diagnostics", of_heads)):
        table = Table(["line", "rank", *_MEASURED], [_by_line(row) for row in worst_first(rows, drawing.sort_by)])
        yield _saved(table, out / f"{name}.csv")
    heads = Table(_MEASURED, [_by_head(row) for row in worst_first(per_head(every), drawing.sort_by)])
    yield _saved(heads, out / "heads.csv")
    yield f"By {drawing.sort_by}, the worst head first:"
    yield heads.markdown()


def _by_line(row: Row) -> list[str]:
    return [str(row.line), str(row.rank), *_by_head(row)]


def _by_head(row: Row) -> list[str]:
    place = ["mean" if part is None else str(part) for part in (row.layer, row.head)]
    return [row.site, *place, *(f"{value:.4f}" for value in row.values.values()), row.dead]


def _saved(table: Table, path: Path) -> str:
    path.write_text(table.csv(), encoding="utf-8")
    return str(path)


def _folder(out: Path, name: str) -> Path:
    path = out / name
    path.mkdir(exist_ok=True)
    return path
