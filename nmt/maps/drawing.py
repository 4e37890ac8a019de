"""Makes pictures, tables, alignments and diagnostics from a folder of attention maps."""

import csv
import logging
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from jaxtyping import Float

from nmt.errors import Mistake
from nmt.files import atomic_write, subfolder, write_text
from nmt.maps.attention_map import SentenceMaps, check_layer_or_head, selected, selected_sites
from nmt.maps.diagnostics import HeadDiagnostics, Measures, of_one_map, per_head, per_sentence, worst_first
from nmt.maps.links import MapSelector, selected_word_map
from nmt.maps.map_files import MapFolder, file_stem
from nmt.maps.plots import DPI, FONT, Look, check_look, heat_map, heat_map_grid, missing_glyphs
from nmt.maps.symmetrization import LINKS, all_links, pharaoh
from nmt.maps.words import LabeledMap, PieceRow, labeled, spaced
from nmt.pace import Pace
from nmt.sites import SITES
from nmt.tables import Table

logger = logging.getLogger(__name__)

METHOD_TITLES = {
    "gradient_x_input": "Gradient × input",
    "integrated_gradients": "Integrated gradients",
    "occlusion": "Occlusion",
    "value_zeroing": "Value zeroing",
    "p_cxmi": "P-CXMI",
}
LayerOrHead = int | Literal["all"] | None
PICTURES = ("png", "svg", "pdf")
LEFT_OUT = "left_out.csv"
_DECIMALS = 6
_FEW_LETTERS = 20
_TEXTS = ("source.txt", "target.txt")
_ALIGNMENTS = (*_TEXTS, *(f"{name}.align" for name in LINKS))
_FILES = ("diagnostics.csv", "sentence_diagnostics.csv", "heads.csv", "viewer.html", LEFT_OUT)
_FOLDERS = {
    "pictures": re.compile(r"\d{5,}(-\d+)?\.\w+(\.grid|(\.layer\d+)?(\.head\d+)?)\.(png|svg|pdf|gif|mp4)", re.ASCII),
    "csv": re.compile(r"\d{5,}(-\d+)?\.csv", re.ASCII),
    "alignments": re.compile("|".join(re.escape(name) for name in _ALIGNMENTS)),
    "viewer_sentences": re.compile(r"\d+-\d+\.js", re.ASCII),
}


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """What is drawn from maps, in which formats and how it looks.

    Raises Mistake for a site, layer or head that the maps lack.
    """

    sites: Mapping[str, Mapping[str, Any]]
    """The manifest's description of each site."""
    formats: Sequence[str]
    """Among png, svg, pdf, csv, alignments, diagnostics, viewer, gif and mp4."""
    threshold: float
    """The least weight of the links called 'threshold'."""
    sort_by: str
    """The measure by which diagnostics are sorted."""
    site: str = "all"
    layer: LayerOrHead = None
    """A layer, 'all' for a picture of each, or None for their mean; so for `head`."""
    head: LayerOrHead = None
    grid: bool = False
    """Whether a picture shows all layers and heads of a site, instead of one map."""
    row: PieceRow = "predicts"
    words: bool = False
    """Whether rows and columns are words instead of pieces."""
    width: float | None = None
    max_weight: float | None = None
    dpi: int = DPI
    font: str = FONT
    palette: str | None = None
    special: bool = True
    """Whether pictures show the rows and columns of BOS and EOS."""

    def __post_init__(self) -> None:
        check_look(self.font, self.palette)
        for site in self.drawn_sites:
            for key, value in (("layer", self.layer), ("head", self.head)):
                if value != "all":
                    check_layer_or_head(key, value, self.sites[site][f"{key}s"], site)

    @property
    def drawn_sites(self) -> list[str]:
        """The selected sites."""
        return selected_sites(self.site, self.sites)

    def layers_and_heads(self, weights: Float[np.ndarray, "layers heads *map"]) -> list[tuple[int | None, int | None]]:
        """The selected pairs of layer and head; None means the mean."""
        layers, heads = weights.shape[:2]
        return [
            (layer, head)
            for layer in (range(layers) if self.layer == "all" else [self.layer])
            for head in (range(heads) if self.head == "all" else [self.head])
        ]

    @property
    def selector(self) -> MapSelector:
        """The map of cross attention that links are read from: a mean unless one layer or head of it is drawn."""
        # The layer and head of another site may not exist in cross attention.
        chosen = (self.layer, self.head) if "cross" in self.drawn_sites else (None, None)
        layer, head = (value if isinstance(value, int) else None for value in chosen)
        return MapSelector(self.row, layer, head)

    def labeled_maps(self, sentence: SentenceMaps, *, special: bool = True) -> list[tuple[str, LabeledMap]]:
        """The maps of a sentence at the selected sites, with the labels of their rows and columns.

        If `special` is false, they lack the rows and columns of BOS and EOS. The first sentence of a document has none
        at the sites that attend to earlier sentences.
        """
        maps = {item.site: item for item in sentence.maps}
        return [
            (site, labeled(maps[site], self.row, words=self.words, special=special))
            for site in self.drawn_sites
            if site in maps
        ]

    def pictured_maps(self, sentence: SentenceMaps) -> list[tuple[str, LabeledMap]]:
        """The same as a picture shows them, which leaves out BOS and EOS if the drawing's `special` is false."""
        return self.labeled_maps(sentence, special=self.special)

    def quantity(self, site: str) -> str:
        """What the weights at a site are, in a title."""
        method = self.sites[site].get("method")
        return SITES[site].title if method is None else METHOD_TITLES.get(method, method)

    def look(self, site: str, line: int, rank: int, detail: str) -> Look:
        """How a picture of a site looks. A picture for print has no title, because it will have a caption."""
        title = "" if self.width else f"{self.quantity(site)}, {line_and_rank(line, rank)}{detail}"
        return Look(
            title=title,
            rows=self.sites[site]["rows"],
            columns=self.sites[site]["columns"],
            width=self.width,
            max_weight=self.max_weight,
            dpi=self.dpi,
            font=self.font,
            palette=self.palette,
        )


def draw_tables(folder: MapFolder, drawing: Drawing, out: Path, lines: Sequence[int]) -> Iterator[str]:
    """Writes tables, alignments and diagnostics, if chosen, and yields the text to print: the paths and a table.

    Alignments always cover all lines. Raises Mistake if a line has no maps.
    """
    formats = drawing.formats
    if "csv" in formats:
        yield from _tables(folder, drawing, target=subfolder(out, "csv"), lines=lines)
    if "alignments" in formats:
        yield from _alignments(folder, drawing, subfolder(out, "alignments"))
    if "diagnostics" in formats:
        yield from _diagnostics(folder, drawing, out=out, lines=lines)


def clear(out: Path) -> None:
    """Deletes the files that are made from maps, recognized by their names, and folders left empty; nothing else."""
    for name in _FILES:
        (out / name).unlink(missing_ok=True)
    for name, pattern in _FOLDERS.items():
        if (out / name).is_symlink():
            continue  # what is in its target may be somebody else's
        for path in (out / name).glob("*"):
            if pattern.fullmatch(path.name):
                path.unlink()
        if (out / name).is_dir() and not any((out / name).iterdir()):
            (out / name).rmdir()


def draw_pictures(folder: MapFolder, drawing: Drawing, out: Path, lines: Sequence[int]) -> Iterator[str]:
    """Draws the chosen kinds of pictures of every sentence that fits, and yields their paths.

    Some lines of a file may be too long for the width. Raises Mistake if no picture can be drawn.
    """
    kinds = [kind for kind in PICTURES if kind in drawing.formats]
    if not kinds:
        return
    target = subfolder(out, "pictures")
    pace, total = Pace("sentences drawn"), folder.number(lines)
    drawn, refused = 0, ""
    fonts = Look(font=drawing.font).fonts
    missing: set[str] = set()
    for sentence in folder.sentences(lines):
        for site, (weights, rows, columns) in drawing.pictured_maps(sentence):
            missing |= missing_glyphs([*rows, *columns], fonts)
            layers, heads = weights.shape[:2]
            for layer, head in [(None, None)] if drawing.grid else drawing.layers_and_heads(weights):
                parts = [f"{key}{value}" for key, value in (("layer", layer), ("head", head)) if value is not None]
                name = ".".join([file_stem(sentence.line, sentence.rank), site, *(["grid"] if drawing.grid else parts)])
                detail = "" if drawing.grid else layer_and_head(("layer", layer, layers), ("head", head, heads))
                look = drawing.look(site, sentence.line, sentence.rank, detail=detail)
                try:
                    if drawing.grid:
                        picture = heat_map_grid(weights, column_labels=columns, row_labels=rows, look=look)
                    else:
                        one_map = selected(weights, layer, head)
                        picture = heat_map(one_map, column_labels=columns, row_labels=rows, look=look)
                except Mistake as error:
                    refused = str(error)
                    logger.warning("%s is not drawn: %s", name, error)
                    continue
                drawn += 1
                for kind in kinds:
                    picture.save(target / f"{name}.{kind}")
                    yield str(target / f"{name}.{kind}")
        pace(1, total)
    warn_of_missing_glyphs(missing)
    if not drawn:
        reason = refused or (
            f"No sentence has maps at {', '.join(drawing.drawn_sites)}: choose other lines or another site, or export "
            "the maps again with documents=FILE."
        )
        raise Mistake(f"No picture could be drawn. {reason}")


def warn_of_missing_glyphs(missing: set[str]) -> None:
    """Warns once of all letters that no installed font has, if there are any."""
    if missing:
        logger.warning(
            "No installed font has the letters %s, which are drawn as boxes: install one that has them, such as "
            "Noto Sans CJK, or name it with font=.",
            " ".join(sorted(missing)[:_FEW_LETTERS]) + (" ..." if len(missing) > _FEW_LETTERS else ""),
        )


def line_and_rank(line: int, rank: int) -> str:
    """The sentence in a title, such as 'line 3, translation 2'."""
    return f"line {line}" if rank == 1 else f"line {line}, translation {rank}"


def layer_and_head(*axes: tuple[str, int | None, int]) -> str:
    """The layer and head in a title, such as ', mean of 3 layers, head 1'; omitted if there is only one."""
    several = [(name, value, number) for name, value, number in axes if number > 1]
    means = " and ".join(f"{number} {name}s" for name, value, number in several if value is None)
    chosen = [f"{name} {value}" for name, value, _ in several if value is not None]
    return "".join(f", {part}" for part in ([f"mean of {means}"] if means else []) + chosen)


def _tables(folder: MapFolder, drawing: Drawing, target: Path, lines: Sequence[int]) -> Iterator[str]:
    pace, total = Pace("tables written"), folder.number(lines)
    for sentence in folder.sentences(lines):
        path = target / f"{file_stem(sentence.line, sentence.rank)}.csv"
        with atomic_write(path) as part, part.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["site", "layer", "head", "row", "row_label", "column", "column_label", "weight"])
            for site, (stacked, rows, columns) in drawing.labeled_maps(sentence):
                for layer, head in drawing.layers_and_heads(stacked):
                    weights = selected(stacked, layer, head)
                    keys = [site, "mean" if layer is None else layer, "mean" if head is None else head]
                    for row, column in np.ndindex(weights.shape):
                        weight = round(float(weights[row, column]), _DECIMALS)
                        writer.writerow([*keys, row, rows[row], column, columns[column], weight])
        yield str(path)
        pace(1, total)


def _alignments(folder: MapFolder, drawing: Drawing, target: Path) -> Iterator[str]:
    """Writes the words and links of each input line's best translation, line by line; lines without maps are empty."""
    # What each file has on an input line, by line and file name.
    texts: dict[int, dict[str, str]] = {}
    for sentence in folder.sentences():
        if sentence.rank == 1:
            pieces = sentence.source_pieces, sentence.target_pieces
            weights = selected_word_map(sentence.site("cross").weights, *pieces, choice=drawing.selector)
            links = all_links(weights, drawing.threshold)
            texts[sentence.line] = {f"{name}.align": pharaoh(links[name]) for name in LINKS}
            texts[sentence.line] |= zip(_TEXTS, map(spaced, pieces), strict=True)
    for name in _ALIGNMENTS:
        lines = [texts.get(line, {}).get(name, "") for line in range(1, folder.manifest["made_from"]["lines"] + 1)]
        write_text(target / name, "".join(f"{line}\n" for line in lines))
        yield str(target / name)


def _diagnostics(folder: MapFolder, drawing: Drawing, out: Path, lines: Sequence[int]) -> Iterator[str]:
    """Writes three tables of the drawn sites: the drawn maps and all heads, for each sentence, and the heads' means."""
    of_drawn_maps: list[HeadDiagnostics] = []
    of_heads: list[HeadDiagnostics] = []
    for sentence in folder.sentences(lines):
        drawn = replace(sentence, maps=[item for item in sentence.maps if item.site in drawing.drawn_sites])
        of_heads += per_sentence([drawn])
        for item in drawn.maps:
            of_drawn_maps += [
                of_one_map(sentence, item, layer=layer, head=head)
                for layer, head in drawing.layers_and_heads(item.weights)
            ]

    def cells(row: HeadDiagnostics) -> list[str]:
        layer, head = ("mean" if part is None else str(part) for part in (row.layer, row.head))
        values = ["" if math.isnan(value) else f"{value:.4f}" for value in row.values.values()]
        return [row.site, layer, head, *values, row.dead]

    measured = ["site", "layer", "head", *Measures._fields, "dead"]
    tables = {
        name: Table(
            ["line", "rank", *measured],
            [[str(row.line), str(row.rank), *cells(row)] for row in worst_first(rows, drawing.sort_by)],
        )
        for name, rows in (("sentence_diagnostics", of_drawn_maps), ("diagnostics", of_heads))
    }
    tables["heads"] = Table(measured, [cells(row) for row in worst_first(per_head(of_heads), drawing.sort_by)])
    for name, table in tables.items():
        write_text(out / f"{name}.csv", table.csv())
        yield str(out / f"{name}.csv")
    yield f"Heads sorted by {drawing.sort_by}, worst first:"
    yield tables["heads"].markdown()
