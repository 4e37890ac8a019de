"""From a folder of attention maps to what people look at: pictures, tables, alignments, diagnostics, a page."""

import csv
import logging
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nmt.evaluation.alignment import Choice, chosen_map
from nmt.evaluation.diagnostics import Measures, Row, per_head, per_sentence, worst_first
from nmt.evaluation.map_files import MapFolder, file_stem
from nmt.evaluation.maps import selected
from nmt.evaluation.plots import heat_map, heat_map_grid
from nmt.evaluation.symmetrization import LINKS, all_links, pharaoh
from nmt.evaluation.tables import Table
from nmt.evaluation.viewer import write_viewer
from nmt.evaluation.words import LabelledMap, labelled
from nmt.run.map_folders import viewed_runs
from nmt.run.pace import Pace
from nmt.run.refusals import unknown

logger = logging.getLogger(__name__)

PICTURES = ("png", "svg", "pdf")
FORMATS = (*PICTURES, "csv", "alignments", "diagnostics", "viewer")
ALL = "all"
_DECIMALS = 6
_FOLDERS, _FILES = ("pictures", "csv", "alignments"), ("diagnostics.csv", "heads.csv", "viewer.html")


@dataclass(frozen=True)
class Drawing:
    """What is made of maps; the keys of configs/draw_attention.yaml, as they come from a command line.

    Raises ValueError for what cannot be made.
    """

    formats: list[str]
    site: str
    layer: Any
    """A number from 0, 'all', or None for the mean; and the head."""
    head: Any
    grid: bool
    words: bool
    shift: int
    width: Any
    """In inches, None for as large as the map needs."""
    threshold: Any
    sort_by: str

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> "Drawing":
        """Of a configuration's keys."""
        return cls(**{name: config[name] for name in cls.__dataclass_fields__})

    def __post_init__(self) -> None:
        for name in self.formats:
            if name not in FORMATS:
                raise ValueError(unknown("format", str(name), FORMATS))
        for key, value in (("layer", self.layer), ("head", self.head)):
            if value not in (None, ALL) and (not isinstance(value, int) or isinstance(value, bool)):
                raise ValueError(f"{key} is '{value}'; it must be a whole number from 0, all, or null for the mean.")
        if self.grid and (self.layer, self.head, self.width) != (None, None, None):
            raise ValueError("grid=true draws every layer and head by their size; leave out layer, head and width.")
        if self.shift not in (0, 1):
            raise ValueError(f"shift is {self.shift}; it must be 0 (rows predict their piece) or 1 (rows read it).")
        if self.width is not None and not 1 <= _number(self.width) <= 100:
            raise ValueError(f"width is {self.width}; it must be from 1 to 100 inches, such as 3.3, or null.")
        if not 0 < _number(self.threshold) <= 1:
            raise ValueError(f"threshold is {self.threshold}; it must be above 0 and at most 1, such as 0.2.")
        if self.sort_by not in Measures._fields:
            raise ValueError(unknown("measure", self.sort_by, Measures._fields))

    def check_range(self, sites: Mapping[str, Mapping[str, Any]]) -> None:
        """Raises ValueError for a site, a layer or a head that the maps do not have; `sites` is the manifest's."""
        if self.site not in (*sites, ALL):
            raise ValueError(unknown_site(self.site, sites))
        for site in self.sites(sites):
            for key, value in (("layer", self.layer), ("head", self.head)):
                number = sites[site][f"{key}s"]
                if isinstance(value, int) and not 0 <= value < number:
                    there = f"{key}s 0 to {number - 1}" if number > 1 else f"one {key}, 0"
                    raise ValueError(f"{key} is {value}; {site} has {there}: give one, or leave it out for the mean.")

    def sites(self, known: Iterable[str]) -> list[str]:
        """The chosen ones of those that there are."""
        return list(known) if self.site == ALL else [self.site]

    def choice(self) -> Choice:
        """The map that alignments are read from: means where no single layer or head is chosen."""
        layer, head = (value if isinstance(value, int) else None for value in (self.layer, self.head))
        return Choice(self.shift, layer, head)


def unknown_site(site: str, known: Iterable[str]) -> str:
    """The sentence for a site that a model does not have."""
    return f"There is no attention at site '{site}' in this model, only at {', '.join(known)}; 'all' is each of them."


def draw(folder: MapFolder, drawing: Drawing, out: Path, lines: Sequence[int] | None = None) -> Iterator[str]:
    """Makes the formats of the maps of all lines, or of some; yields what there is to print: paths, and a table.

    Alignments are of all lines always. Raises ValueError for lines that have no maps.
    """
    wanted = folder.lines if lines is None else lines
    if kinds := [kind for kind in PICTURES if kind in drawing.formats]:
        yield from _pictures(folder, drawing, out, wanted, kinds)
    if "csv" in drawing.formats:
        yield from _tables(folder, drawing, out, wanted)
    if "alignments" in drawing.formats:
        yield from _alignments(folder, drawing, out)
    if "diagnostics" in drawing.formats:
        yield from _diagnostics(folder, drawing, out, wanted)
    if "viewer" in drawing.formats:
        write_viewer(out / "viewer.html", viewed_runs([folder], wanted))
        yield str(out / "viewer.html")


def clear(out: Path) -> None:
    """Deletes what `draw` has made in a folder, and nothing else."""
    for name in _FOLDERS:
        shutil.rmtree(out / name, ignore_errors=True)
    for name in _FILES:
        (out / name).unlink(missing_ok=True)


def _pictures(
    folder: MapFolder, drawing: Drawing, out: Path, lines: Sequence[int], kinds: Sequence[str]
) -> Iterator[str]:
    target = _folder(out, "pictures")
    pace, total = Pace("sentences drawn"), folder.number(lines)
    for sentence in folder.sentences(lines):
        for site in drawing.sites(item.site for item in sentence.maps):
            shown = labelled(sentence.site(site), drawing.shift, words=drawing.words)
            stem = f"{file_stem(sentence.line, sentence.rank)}.{site}"
            for kind in kinds:
                if drawing.grid:
                    path = target / f"{stem}.grid.{kind}"
                    heat_map_grid(shown.weights, shown.columns, shown.rows, path, f"{site} attention")
                    yield str(path)
                else:
                    yield from _single(shown, drawing, target / stem, kind, site)
        pace(1, total)


def _single(shown: LabelledMap, drawing: Drawing, stem: Path, kind: str, site: str) -> Iterator[str]:
    for layer, head in _places(shown, drawing):
        parts = [f"{key}{value}" for key, value in (("layer", layer), ("head", head)) if value is not None]
        path = stem.with_name(".".join([stem.name, *parts, kind]))
        title = "" if drawing.width else f"{site} attention{_described(shown, layer, head)}"
        weights = selected(shown.weights, layer, head)
        try:
            heat_map(weights, shown.columns, shown.rows, path, title, drawing.width and float(drawing.width))
        except ValueError as error:
            # Of a file of lines a few may be too long for the page.
            logger.warning("%s is not drawn: %s", path, error)
        else:
            yield str(path)


def _described(shown: LabelledMap, layer: int | None, head: int | None) -> str:
    """', mean of 3 layers, head 1': nothing of what there is one of."""
    found = []
    for name, value, number in zip(("layer", "head"), (layer, head), shown.weights.shape[:2], strict=True):
        if number > 1:
            found.append(f"mean of {number} {name}s" if value is None else f"{name} {value} of 0 to {number - 1}")
    return "".join(f", {part}" for part in found)


def _places(shown: LabelledMap, drawing: Drawing) -> Iterator[tuple[int | None, int | None]]:
    """The chosen layers and heads, None for the mean."""
    layers, heads = shown.weights.shape[:2]
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
                shown = labelled(sentence.site(site), drawing.shift, words=drawing.words)
                writer.writerows(_cells(site, shown, drawing))
        yield str(path)
        pace(1, total)


def _cells(site: str, shown: LabelledMap, drawing: Drawing) -> Iterator[list[Any]]:
    for layer, head in _places(shown, drawing):
        weights = selected(shown.weights, layer, head)
        place = [site, "mean" if layer is None else layer, "mean" if head is None else head]
        for row, row_label in enumerate(shown.rows):
            for column, column_label in enumerate(shown.columns):
                weight = round(float(weights[row, column]), _DECIMALS)
                yield [*place, row, row_label, column, column_label, weight]


def _alignments(folder: MapFolder, drawing: Drawing, out: Path) -> Iterator[str]:
    """Pharaoh files with a line for each line of the input, empty where there are no maps; of the first ranks."""
    found: dict[int, dict[str, str]] = {}
    for sentence in folder.sentences():
        if sentence.rank == 1:
            pieces = sentence.source_pieces, sentence.target_pieces
            words = chosen_map(sentence.site("cross").weights, *pieces, drawing.choice())
            links = all_links(words, float(drawing.threshold))
            found[sentence.line] = {name: pharaoh(links[name]) for name in LINKS}
    target = _folder(out, "alignments")
    for name in LINKS:
        lines = [found.get(line, {}).get(name, "") for line in range(1, folder.manifest["made_from"]["lines"] + 1)]
        path = target / f"{name}.align"
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        yield str(path)


def _diagnostics(folder: MapFolder, drawing: Drawing, out: Path, lines: Sequence[int]) -> Iterator[str]:
    """By sentence those of the chosen sites, by head those of all."""
    rows = per_sentence(folder.sentences(lines))
    chosen = drawing.sites(folder.manifest["sites"])
    header = ["site", "layer", "head", *Measures._fields, "dead"]
    of_sentences = worst_first([row for row in rows if row.site in chosen], drawing.sort_by)
    of_heads = worst_first(per_head(rows), drawing.sort_by)
    places = [[str(row.line), str(row.rank)] for row in of_sentences]
    tables = {
        "diagnostics": Table(
            ["line", "rank", *header],
            [[*place, *_written(row)] for place, row in zip(places, of_sentences, strict=True)],
        ),
        "heads": Table(header, [_written(row) for row in of_heads]),
    }
    for name, table in tables.items():
        (out / f"{name}.csv").write_text(table.csv(), encoding="utf-8")
        yield str(out / f"{name}.csv")
    yield tables["heads"].markdown()


def _written(row: Row) -> list[str]:
    values = [f"{value:.4f}" for value in row.values.values()]
    return [row.site, str(row.layer), str(row.head), *values, row.dead]


def _folder(out: Path, name: str) -> Path:
    path = out / name
    path.mkdir(exist_ok=True)
    return path


def _number(value: Any) -> float:
    """NaN, which is in no range, for what is no number."""
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else float("nan")
