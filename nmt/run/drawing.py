"""From a folder of attention maps to what people look at: pictures, tables, alignments, diagnostics, a page."""

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nmt.evaluation.alignment import Choice, argmax_links, chosen_map, threshold_links
from nmt.evaluation.diagnostics import Measures, Row, per_head, per_sentence, worst_first
from nmt.evaluation.map_files import MapFolder, file_stem
from nmt.evaluation.maps import SentenceMaps
from nmt.evaluation.plots import heat_map, heat_map_grid
from nmt.evaluation.symmetrization import SYMMETRIZATIONS, pharaoh
from nmt.evaluation.tables import Table
from nmt.evaluation.viewer import ViewedRun, write_viewer
from nmt.evaluation.words import LabelledMap, labelled
from nmt.run.pace import Pace
from nmt.run.refusals import unknown

PICTURES = ("png", "svg", "pdf")
FORMATS = (*PICTURES, "csv", "alignments", "diagnostics", "viewer")
ALL = "all"
_DECIMALS = 6


@dataclass(frozen=True)
class Drawing:
    """What is made of maps; the keys of configs/draw_attention.yaml. Raises ValueError for what cannot be made."""

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
        if self.shift not in (0, 1):
            raise ValueError(f"shift is {self.shift}; it must be 0 (rows predict their piece) or 1 (rows read it).")
        if self.width is not None and (not isinstance(self.width, (int, float)) or not 1 <= self.width <= 100):
            raise ValueError(f"width is {self.width}; it must be from 1 to 100 inches, such as 3.3, or null.")
        if not isinstance(self.threshold, (int, float)) or not 0 < self.threshold <= 1:
            raise ValueError(f"threshold is {self.threshold}; it must be above 0 and at most 1, such as 0.2.")
        if self.sort_by not in Measures._fields:
            raise ValueError(unknown("measure", self.sort_by, Measures._fields))

    def check_range(self, sites: Mapping[str, Mapping[str, Any]]) -> None:
        """Raises ValueError for a site, a layer or a head that the maps do not have; `sites` is the manifest's."""
        if self.site not in (*sites, ALL):
            raise ValueError(unknown("site", self.site, [*sites, ALL]))
        for site in self.sites(sites):
            for key, value in (("layer", self.layer), ("head", self.head)):
                number = sites[site][f"{key}s"]
                if isinstance(value, int) and not 0 <= value < number:
                    raise ValueError(
                        f"{key} is {value}; the {key}s of {site} are 0 to {number - 1}, null is the mean of them."
                    )

    def sites(self, known: Iterable[str]) -> list[str]:
        """The chosen ones of those that there are."""
        return list(known) if self.site == ALL else [self.site]

    def choice(self) -> Choice:
        """The map that alignments are read from: means where no single layer or head is chosen."""
        layer, head = (value if isinstance(value, int) else None for value in (self.layer, self.head))
        return Choice(self.shift, layer, head)


def draw(folder: MapFolder, drawing: Drawing, out: Path, lines: Sequence[int] | None = None) -> Iterator[Path]:
    """Makes the formats of the maps of all lines, or of some; the path of each file, or of a folder of many."""
    out.mkdir(parents=True, exist_ok=True)
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
        write_viewer(out / "viewer.html", [ViewedRun(run_name(folder), folder.sentences(wanted))])
        yield out / "viewer.html"


def run_name(folder: MapFolder) -> str:
    """What the maps' run is called in pictures: its path, and the step of training if that had not ended."""
    made_from = folder.manifest["made_from"]
    step = made_from.get("step")
    return f"step {step}" if step is not None else str(made_from.get("run_dir", folder.path))


def _pictures(
    folder: MapFolder, drawing: Drawing, out: Path, lines: Sequence[int], kinds: Sequence[str]
) -> Iterator[Path]:
    target = out / "pictures"
    target.mkdir(exist_ok=True)
    pace = Pace("sentences drawn")
    for sentence in folder.sentences(lines):
        for site in drawing.sites(item.site for item in sentence.maps):
            shown = labelled(sentence.site(site), drawing.shift, words=drawing.words)
            stem = target / f"{file_stem(sentence.line, sentence.rank)}.{site}"
            for kind in kinds:
                if drawing.grid:
                    path = stem.with_name(f"{stem.name}.grid.{kind}")
                    heat_map_grid(shown.weights, shown.columns, shown.rows, path, f"{site} attention")
                    yield path
                else:
                    yield from _single(shown, drawing, stem, kind, site)
        pace(1, len(lines))


def _single(shown: LabelledMap, drawing: Drawing, stem: Path, kind: str, site: str) -> Iterator[Path]:
    for layer, head, weights in _selected(shown, drawing):
        parts = [f"{key}{value}" for key, value in (("layer", layer), ("head", head)) if value is not None]
        path = stem.with_name(".".join([stem.name, *parts, kind]))
        title = "" if drawing.width else f"{site} attention{_described(shown, layer, head)}"
        heat_map(weights, shown.columns, shown.rows, path, title, drawing.width)
        yield path


def _described(shown: LabelledMap, layer: int | None, head: int | None) -> str:
    """', mean of 3 layers, head 1': nothing of what there is one of."""
    found = []
    for name, value, number in zip(("layer", "head"), (layer, head), shown.weights.shape[:2], strict=True):
        if number > 1:
            found.append(f"mean of {number} {name}s" if value is None else f"{name} {value} of 0 to {number - 1}")
    return "".join(f", {part}" for part in found)


def _selected(shown: LabelledMap, drawing: Drawing) -> Iterator[tuple[int | None, int | None, Any]]:
    """The chosen layers and heads, None for the mean, with their weights (rows, columns)."""
    layers, heads = shown.weights.shape[:2]
    for layer in _numbers(drawing.layer, layers):
        of_layer = shown.weights.mean(0) if layer is None else shown.weights[layer]
        for head in _numbers(drawing.head, heads):
            yield layer, head, of_layer.mean(0) if head is None else of_layer[head]


def _numbers(chosen: int | str | None, number: int) -> list[int | None]:
    return list(range(number)) if isinstance(chosen, str) else [chosen]


def _tables(folder: MapFolder, drawing: Drawing, out: Path, lines: Sequence[int]) -> Iterator[Path]:
    target = out / "csv"
    target.mkdir(exist_ok=True)
    for sentence in folder.sentences(lines):
        path = target / f"{file_stem(sentence.line, sentence.rank)}.csv"
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["site", "layer", "head", "row", "row_label", "column", "column_label", "weight"])
            for site in drawing.sites(item.site for item in sentence.maps):
                shown = labelled(sentence.site(site), drawing.shift, words=drawing.words)
                writer.writerows(_cells(site, shown, drawing))
        yield path


def _cells(site: str, shown: LabelledMap, drawing: Drawing) -> Iterator[list[Any]]:
    for layer, head, weights in _selected(shown, drawing):
        place = [site, "mean" if layer is None else layer, "mean" if head is None else head]
        for row, row_label in enumerate(shown.rows):
            for column, column_label in enumerate(shown.columns):
                weight = round(float(weights[row, column]), _DECIMALS)
                yield [*place, row, row_label, column, column_label, weight]


def _alignments(folder: MapFolder, drawing: Drawing, out: Path) -> Iterator[Path]:
    """Pharaoh files with a line for each line of the input, empty where there are no maps; of the first ranks."""
    found: dict[str, dict[int, str]] = {}
    for sentence in folder.sentences():
        if sentence.rank == 1:
            for name, links in alignments(sentence, drawing.choice(), float(drawing.threshold)).items():
                found.setdefault(name, {})[sentence.line] = pharaoh(links)
    target = out / "alignments"
    target.mkdir(exist_ok=True)
    for name, by_line in found.items():
        lines = range(1, folder.manifest["made_from"]["lines"] + 1)
        path = target / f"{name}.align"
        path.write_text("".join(f"{by_line.get(line, '')}\n" for line in lines), encoding="utf-8")
        yield path


def alignments(sentence: SentenceMaps, choice: Choice, threshold: float) -> dict[str, frozenset[tuple[int, int]]]:
    """The links of a sentence by name: argmax of each target word, of each source word, threshold, symmetrised."""
    weights = sentence.site("cross").weights
    words = chosen_map(weights, sentence.source_pieces, sentence.target_pieces, choice)
    forward = argmax_links(words)
    backward = frozenset((j, i) for i, j in argmax_links(words.T))
    symmetrised = {name: symmetrise(forward, backward) for name, symmetrise in SYMMETRIZATIONS.items()}
    return {
        "argmax": forward,
        "argmax-of-source": backward,
        "threshold": threshold_links(words, threshold),
        **symmetrised,
    }


def _diagnostics(folder: MapFolder, drawing: Drawing, out: Path, lines: Sequence[int]) -> Iterator[Path]:
    rows = per_sentence(folder.sentences(lines))
    for name, found, keys in (("diagnostics", rows, ["line", "rank"]), ("heads", per_head(rows), [])):
        header = [*keys, "site", "layer", "head", *Measures._fields, "dead"]
        table = Table(header, [_written(row, keys) for row in worst_first(found, drawing.sort_by)])
        (out / f"{name}.csv").write_text(table.csv(), encoding="utf-8")
        yield out / f"{name}.csv"


def _written(row: Row, keys: Sequence[str]) -> list[str]:
    values = [f"{value:.4f}" for value in row.values.values()]
    return [*(str(getattr(row, key)) for key in keys), row.site, str(row.layer), str(row.head), *values, row.dead]
