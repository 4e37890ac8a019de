"""Pictures that show the maps of several folders side by side: of two runs, or of attention and attribution."""

import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from nmt.errors import Mistake
from nmt.files import subfolder
from nmt.maps.attention_map import SentenceMaps, selected
from nmt.maps.drawing import PICTURES, Drawing, layer_and_head, line_and_rank, warn_of_missing_glyphs
from nmt.maps.map_files import MapFolder, file_stem
from nmt.maps.plots import Look, Panel, heat_maps_side_by_side, missing_glyphs
from nmt.maps.words import text_of
from nmt.names import distinct_names
from nmt.pace import Pace

logger = logging.getLogger(__name__)


class _Names(NamedTuple):
    """What a picture calls the maps of a folder."""

    origin: str
    """The run, or 'step 400'."""
    folder: str
    """Distinguishes two folders of the same run."""


def draw_side_by_side(
    folders: Sequence[MapFolder], drawings: Sequence[Drawing], out: Path, lines: Sequence[int] | None = None
) -> Iterator[str]:
    """Draws each sentence's maps from all folders in one picture with one color scale, and yields the paths.

    Each folder has a drawing of its own, because its sites may differ. The title says what the maps have in common,
    and the name below each map what distinguishes it. Sentences whose source differs between the folders are left out
    with a warning. Raises Mistake if the folders have no sentence or no site in common, if one of the given lines has
    no maps, and if no picture fits the width.
    """
    kinds = [kind for kind in PICTURES if kind in drawings[0].formats]
    shared = _shared_sentences(folders, lines)
    sites = [site for site in drawings[0].drawn_sites if all(site in drawing.drawn_sites for drawing in drawings)]
    if not sites:
        raise Mistake(
            f"{folders[0].path} is drawn at {', '.join(drawings[0].drawn_sites)}, and none of these sites is drawn in "
            "all other folders: choose another site, or name folders that share one."
        )
    target = subfolder(out, "pictures")
    names = _names_of(folders)
    pace, drawn, refused = Pace("sentences drawn"), 0, ""
    fonts = Look(font=drawings[0].font).fonts
    missing: set[str] = set()
    wanted = sorted({line for line, _ in shared})
    of_folders = [
        (sentence for sentence in folder.sentences(wanted) if (sentence.line, sentence.rank) in shared)
        for folder in folders
    ]
    for sentences in zip(*of_folders, strict=True):
        line, rank = sentences[0].line, sentences[0].rank
        for site in sites:
            if not all(site in (item.site for item in sentence.maps) for sentence in sentences):
                continue  # the first sentence of a document has none at the sites that attend to earlier sentences
            title, panels = _titled_panels(site, sentences, drawings, names)
            for panel in panels:
                missing |= missing_glyphs([*panel.row_labels, *panel.column_labels], fonts)
            look = drawings[0].look(site, line, rank, detail="")
            stem = f"{file_stem(line, rank)}.{site}"
            try:
                picture = heat_maps_side_by_side(panels, look._replace(title=title if look.title else ""))
            except Mistake as error:
                refused = str(error)
                logger.warning("%s is not drawn: %s", stem, error)
                continue
            drawn += 1
            for kind in kinds:
                picture.save(target / f"{stem}.{kind}")
                yield str(target / f"{stem}.{kind}")
        pace(1, len(shared))
    warn_of_missing_glyphs(missing)
    if not drawn:
        raise Mistake(f"No picture could be drawn. {refused or f'No sentence has maps at {sites[0]} in all folders.'}")


def _shared_sentences(folders: Sequence[MapFolder], lines: Sequence[int] | None) -> set[tuple[int, int]]:
    """The line and rank of the sentences that all folders have with the same source."""
    if lines is not None:
        for folder in folders:
            folder.check_lines(lines)
    # Two runs may cut the same text into different pieces.
    texts, *others = (
        {(entry["line"], entry["rank"]): text_of(entry["source_pieces"]) for entry in folder.manifest["sentences"]}
        for folder in folders
    )
    wanted = {key for key in texts if lines is None or key[0] in lines}
    shared = {key for key in wanted if all(other.get(key) == texts[key] for other in others)}
    left_out = sorted(wanted - shared)
    if not left_out:
        return shared
    key = left_out[0]
    number = next(number for number, other in enumerate(others, start=1) if other.get(key) != texts[key])
    present = others[number - 1].get(key)
    differs = f"{folders[0].path} has '{texts[key]}' on {line_and_rank(*key)}, but {folders[number].path} has " + (
        "no maps for it" if present is None else f"'{present}'"
    )
    if not shared:
        raise Mistake(
            f"{differs}: maps are drawn side by side for the same sentences, so export them from the same input."
        )
    logger.warning("%d of %d sentences are not drawn: %s.", len(left_out), len(wanted), differs)
    return shared


def _names_of(folders: Sequence[MapFolder]) -> list[_Names]:
    """Names just long enough to differ: whole paths would push the maps apart."""
    origins = list(dict.fromkeys(folder.origin for folder in folders))
    short = dict(zip(origins, distinct_names([Path(origin) for origin in origins]), strict=True))
    places = distinct_names([folder.path for folder in folders])
    return [_Names(short[folder.origin], place) for folder, place in zip(folders, places, strict=True)]


def _titled_panels(
    site: str, sentences: Sequence[SentenceMaps], drawings: Sequence[Drawing], names: Sequence[_Names]
) -> tuple[str, list[Panel]]:
    """The title of a picture, and the map of each folder with the name below it."""
    maps, descriptions = [], []
    for name, drawing, sentence in zip(names, drawings, sentences, strict=True):
        weights, rows, columns = dict(drawing.pictured_maps(sentence))[site]
        [(layer, head)] = drawing.layers_and_heads(weights)
        layers, heads = weights.shape[:2]
        detail = layer_and_head(("layer", layer, layers), ("head", head, heads)).removeprefix(", ")
        descriptions.append((drawing.quantity(site), name.origin, detail))
        maps.append((selected(weights, layer, head), columns, rows))
    title, captions = _title_and_captions(descriptions, line_and_rank(sentences[0].line, sentences[0].rank), names)
    return title, [Panel(caption, *parts) for caption, parts in zip(captions, maps, strict=True)]


def _title_and_captions(
    descriptions: Sequence[tuple[str, str, str]], sentence: str, names: Sequence[_Names]
) -> tuple[str, list[str]]:
    """The title of a picture, and the caption of each map: what its weights are, its run, and its layer and head."""
    count = Counter(descriptions)
    quantities, origins, details = ({description[part] for description in descriptions} for part in range(3))
    common = [next(iter(parts)) if len(parts) == 1 else "" for parts in (quantities, origins, details)]
    title = ", ".join(part for part in (common[0], sentence, *common[1:]) if part)
    captions = []
    for description, name in zip(descriptions, names, strict=True):
        parts = [part for part, shared in zip(description, common, strict=True) if part and part != shared]
        if count[description] > 1:
            parts.append(name.folder)
        captions.append(", ".join(parts))
    return title[0].upper() + title[1:], captions
