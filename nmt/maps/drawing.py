"""Pictures, tables, alignments, diagnostics and the page that are made from a folder of attention maps."""

import csv
import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nmt.config.messages import check_share, unknown
from nmt.maps.attention_map import ALL, selected, selected_sites
from nmt.maps.diagnostics import HeadDiagnostics, Measures, of_choice, per_head, per_sentence, worst_first
from nmt.maps.links import Choice, chosen_map
from nmt.maps.map_files import MapFolder, file_stem
from nmt.maps.plots import Look, heat_map, heat_map_grid
from nmt.maps.symmetrization import LINKS, all_links, pharaoh
from nmt.maps.viewer import viewed_runs, write_viewer
from nmt.maps.words import PIECE_ROWS, labeled, spaced
from nmt.pace import Pace
from nmt.tables import Table

logger = logging.getLogger(__name__)

PICTURES = ("png", "svg", "pdf")
FORMATS = (*PICTURES, "csv", "alignments", "diagnostics", "viewer")
LEFT_OUT = "left_out.csv"
_DECIMALS = 6
_TEXTS = ("source.txt", "target.txt")
_ALIGNMENTS = (*_TEXTS, *(f"{name}.align" for name in LINKS))
_FILES = ("diagnostics.csv", "sentence_diagnostics.csv", "heads.csv", "viewer.html", LEFT_OUT)
_FOLDERS = {
    "pictures": re.compile(r"\d{5,}(-\d+)?\.\w+(\.grid|(\.layer\d+)?(\.head\d+)?)\.(png|svg|pdf)", re.ASCII),
    "csv": re.compile(r"\d{5,}(-\d+)?\.csv", re.ASCII),
    "alignments": re.compile("|".join(re.escape(name) for name in _ALIGNMENTS)),
}


@dataclass(frozen=True)
class Drawing:
    """The settings that nmt.export_attention and nmt.draw_attention share. Raises ValueError for invalid ones."""

    formats: list[str]
    site: str
    layer: Any
    """A number from 0, 'all', or None for the mean."""
    head: Any
    """As for layer."""
    grid: bool
    words: bool
    row: Any
    width: Any
    """In inches; None: as large as the map needs."""
    max_weight: Any
    """The weight of the darkest color; None: the largest weight of each picture."""
    threshold: Any
    sort_by: str

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> "Drawing":
        """Takes the settings from a command's configuration."""
        return cls(**{name: config[name] for name in cls.__dataclass_fields__})

    def __post_init__(self) -> None:
        for name in self.formats:
            if name not in FORMATS:
                raise ValueError(unknown("format", str(name), FORMATS))
        for key, value in (("layer", self.layer), ("head", self.head)):
            if value not in (None, ALL) and (not isinstance(value, int) or isinstance(value, bool)):
                raise ValueError(f"{key} is '{value}'; it must be a whole number from 0, all, or null for the mean.")
        if self.grid and (self.layer, self.head) != (None, None):
            raise ValueError("grid=true draws every layer and head; leave out layer and head.")
        if self.row not in PIECE_ROWS:
            raise ValueError(unknown("row", str(self.row), PIECE_ROWS))
        if self.width is not None:
            number = isinstance(self.width, (int, float)) and not isinstance(self.width, bool)
            if not number or not 1 <= self.width <= 100:
                raise ValueError(f"width is {self.width}; it must be from 1 to 100 inches, such as 3.3, or null.")
        check_share("threshold", self.threshold)
        if self.max_weight is not None:
            check_share("max_weight", self.max_weight)
        if self.sort_by not in Measures._fields:
            raise ValueError(unknown("measure", self.sort_by, Measures._fields))

    def check_range(self, sites: Mapping[str, Mapping[str, Any]]) -> None:
        """Raises ValueError for a site, layer or head that the maps lack; `sites` is the manifest's."""
        for site in selected_sites(self.site, sites):
            for key, value in (("layer", self.layer), ("head", self.head)):
                number = sites[site][f"{key}s"]
                if isinstance(value, int) and not 0 <= value < number:
                    there = f"{key}s 0 to {number - 1}" if number > 1 else f"one {key}, 0"
                    raise ValueError(f"{key} is {value}; {site} has {there}: give one, or leave it out for the mean.")

    def sites(self, known: Iterable[str]) -> list[str]:
        """The sites to draw."""
        return selected_sites(self.site, known)

    def places(self, layers: int, heads: int) -> Iterator[tuple[int | None, int | None]]:
        """The layers and heads to draw, None for the mean."""
        for layer in range(layers) if self.layer == ALL else [self.layer]:
            for head in range(heads) if self.head == ALL else [self.head]:
                yield layer, head

    def choice(self) -> Choice:
        """The map that links are read from: a mean unless one layer or head is chosen."""
        layer, head = (value if isinstance(value, int) else None for value in (self.layer, self.head))
        return Choice(self.row, layer, head)

    def look(self, sites: Mapping[str, Mapping[str, Any]], site: str, line: int, rank: int, detail: str) -> Look:
        """How a picture of a site looks, by the manifest's `sites`. A picture for print has no title, but a caption."""
        width, most = (None if value is None else float(value) for value in (self.width, self.max_weight))
        which = f"line {line}" if rank == 1 else f"line {line}, translation {rank}"
        title = "" if width else f"{site} attention, {which}{detail}"
        return Look(title, sites[site]["rows"], sites[site]["columns"], width, most)


def draw(folder: MapFolder, drawing: Drawing, out: Path, lines: Sequence[int] | None = None) -> Iterator[str]:
    """Makes the chosen formats of all lines, or of some, and yields the lines to print: paths, and a table.

    Alignments always have all lines. Raises ValueError for lines without maps, and if no picture can be drawn.
    """
    wanted = folder.lines if lines is None else lines
    if "csv" in drawing.formats:
        yield from _tables(folder, drawing, out / "csv", wanted)
    if "alignments" in drawing.formats:
        yield from _alignments(folder, drawing, out / "alignments")
    if "diagnostics" in drawing.formats:
        yield from _diagnostics(folder, drawing, out, wanted)
    if "viewer" in drawing.formats:
        write_viewer(out / "viewer.html", viewed_runs([folder], wanted))
        yield str(out / "viewer.html")
    # Last, because it fails if the width is too small for every picture.
    if kinds := [kind for kind in PICTURES if kind in drawing.formats]:
        yield from _pictures(folder, drawing, out / "pictures", wanted, kinds)


def clear(out: Path) -> None:
    """Deletes what `draw` has made in a folder, by its names, and folders that are empty then; nothing else."""
    for name in _FILES:
        (out / name).unlink(missing_ok=True)
    for name, pattern in _FOLDERS.items():
        for path in (out / name).glob("*"):
            if pattern.fullmatch(path.name):
                path.unlink()
        if (out / name).is_dir() and not any((out / name).iterdir()):
            (out / name).rmdir()


def _pictures(
    folder: MapFolder, drawing: Drawing, target: Path, lines: Sequence[int], kinds: Sequence[str]
) -> Iterator[str]:
    """Draws every sentence that fits; in a file of lines a few may be too long for the width."""
    target.mkdir(exist_ok=True)
    pace, total = Pace("sentences drawn"), folder.number(lines)
    drawn, refused = 0, ""
    for sentence in folder.sentences(lines):
        for site in drawing.sites(item.site for item in sentence.maps):
            shown = labeled(sentence.site(site), drawing.row, words=drawing.words)
            layers, heads = shown.weights.shape[:2]
            for layer, head in [(None, None)] if drawing.grid else drawing.places(layers, heads):
                parts = [f"{key}{value}" for key, value in (("layer", layer), ("head", head)) if value is not None]
                name = ".".join([file_stem(sentence.line, sentence.rank), site, *(["grid"] if drawing.grid else parts)])
                detail = "" if drawing.grid else _detail(("layer", layer, layers), ("head", head, heads))
                look = drawing.look(folder.manifest["sites"], site, sentence.line, sentence.rank, detail)
                try:
                    if drawing.grid:
                        picture = heat_map_grid(shown.weights, shown.columns, shown.rows, look)
                    else:
                        picture = heat_map(selected(shown.weights, layer, head), shown.columns, shown.rows, look)
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


def _detail(*axes: tuple[str, int | None, int]) -> str:
    """The layer and head in a title, such as ', mean of 3 layers, head 1 (of 4)'; a single one is not mentioned."""
    return "".join(
        f", mean of {number} {name}s" if value is None else f", {name} {value} (of {number})"
        for name, value, number in axes
        if number > 1
    )


def _tables(folder: MapFolder, drawing: Drawing, target: Path, lines: Sequence[int]) -> Iterator[str]:
    target.mkdir(exist_ok=True)
    pace, total = Pace("tables written"), folder.number(lines)
    for sentence in folder.sentences(lines):
        path = target / f"{file_stem(sentence.line, sentence.rank)}.csv"
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["site", "layer", "head", "row", "row_label", "column", "column_label", "weight"])
            for site in drawing.sites(item.site for item in sentence.maps):
                shown = labeled(sentence.site(site), drawing.row, words=drawing.words)
                for layer, head in drawing.places(*shown.weights.shape[:2]):
                    weights = selected(shown.weights, layer, head)
                    place = [site, "mean" if layer is None else layer, "mean" if head is None else head]
                    for row, column in np.ndindex(weights.shape):
                        weight = round(float(weights[row, column]), _DECIMALS)
                        writer.writerow([*place, row, shown.rows[row], column, shown.columns[column], weight])
        yield str(path)
        pace(1, total)


def _alignments(folder: MapFolder, drawing: Drawing, target: Path) -> Iterator[str]:
    """Words and links of each line's first rank, one line for each line of the input; empty if that has no maps."""
    found: dict[int, dict[str, str]] = {}
    for sentence in folder.sentences():
        if sentence.rank == 1:
            pieces = sentence.source_pieces, sentence.target_pieces
            words = chosen_map(sentence.site("cross").weights, *pieces, drawing.choice())
            links = all_links(words, float(drawing.threshold))
            found[sentence.line] = {f"{name}.align": pharaoh(links[name]) for name in LINKS}
            found[sentence.line] |= zip(_TEXTS, map(spaced, pieces), strict=True)
    target.mkdir(exist_ok=True)
    for name in _ALIGNMENTS:
        lines = [found.get(line, {}).get(name, "") for line in range(1, folder.manifest["made_from"]["lines"] + 1)]
        (target / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        yield str(target / name)


def _diagnostics(folder: MapFolder, drawing: Drawing, out: Path, lines: Sequence[int]) -> Iterator[str]:
    """Three tables: each sentence's drawn maps, each sentence's heads at the drawn sites, and all heads on average."""
    drawn: list[HeadDiagnostics] = []
    every: list[HeadDiagnostics] = []
    for sentence in folder.sentences(lines):
        every += per_sentence([sentence])
        for site in drawing.sites(item.site for item in sentence.maps):
            for layer, head in drawing.places(*sentence.site(site).weights.shape[:2]):
                drawn.append(of_choice(sentence, site, layer, head))
    of_sites = [each for each in every if each.site in drawing.sites(folder.manifest["sites"])]

    def cells(each: HeadDiagnostics) -> list[str]:
        place = ["mean" if part is None else str(part) for part in (each.layer, each.head)]
        return [each.site, *place, *(f"{value:.4f}" for value in each.values.values()), each.dead]

    measured = ["site", "layer", "head", *Measures._fields, "dead"]
    tables = {
        name: Table(
            ["line", "rank", *measured],
            [[str(each.line), str(each.rank), *cells(each)] for each in worst_first(found, drawing.sort_by)],
        )
        for name, found in (("sentence_diagnostics", drawn), ("diagnostics", of_sites))
    }
    tables["heads"] = Table(measured, [cells(each) for each in worst_first(per_head(every), drawing.sort_by)])
    for name, table in tables.items():
        (out / f"{name}.csv").write_text(table.csv(), encoding="utf-8")
        yield str(out / f"{name}.csv")
    yield f"By {drawing.sort_by}, the worst head first:"
    yield tables["heads"].markdown()
