"""Writes the maps of each line of a file to a folder."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from nmt.config.shared_settings import MapFileSettings
from nmt.data.corpus import read_lines, read_parallel
from nmt.data.documents import earlier_pairs
from nmt.errors import Mistake
from nmt.files import check_writable, existing_file
from nmt.insight.encoder_maps import encoder_maps
from nmt.insight.forced_maps import IdPair, MakeMaps, first_ranked
from nmt.insight.provenance import described_files, described_run
from nmt.maps.attention_map import SentenceMaps
from nmt.maps.drawing import LEFT_OUT, Drawing, clear
from nmt.maps.map_files import MANIFEST, MapFolder, write_maps
from nmt.pace import Pace
from nmt.runs.encoder import LoadedEncoder
from nmt.runs.load import LoadedRun, documents_to_read
from nmt.runs.search import build_translator, search_config
from nmt.tables import Table
from nmt.text import normalize

logger = logging.getLogger(__name__)

# Drawing this many pictures takes minutes, and the page is slow to open.
_MANY = 1000


class MapFiles(NamedTuple):
    """The source file, the target file (None if the search finds the targets), and the folder for the maps."""

    source: Path
    target: Path | None
    out: Path


def map_files(settings: MapFileSettings, given: Sequence[str]) -> MapFiles:
    """The files that the settings name; `given` are the keys that were set on the command line.

    Raises Mistake for a missing file, for maps that must not be replaced, and if
    both a target and search settings are given.
    """
    source = existing_file("input", settings.input)
    target = None if settings.target is None else existing_file("target", settings.target)
    searched = [key for key in given if key.split(".")[0] == "search"]
    if target and searched:
        raise Mistake(f"{searched[0]} has no effect on maps of a given target; leave out one of the two.")
    out = Path(settings.out)
    check_writable("out", out)
    _check_free(out, overwrite=settings.overwrite)
    return MapFiles(source, target, out)


def export_maps(
    run: LoadedRun,
    files: MapFiles,
    settings: MapFileSettings,
    drawing: Drawing,
    make_maps: MakeMaps,
    made_by: Mapping[str, Any] | None = None,
) -> MapFolder:
    """Writes the maps that `make_maps` makes for each line, and prints the path of their manifest.

    The targets are the lines of the target file or the hypotheses of the search. `made_by` is added to the manifest's
    `made_from`. Raises Mistake if no line has maps.
    """
    source, target, _ = files
    if target is None:
        pairs = _translated(run, source, settings)
    else:
        lines = zip(run.tokenizers, read_parallel(source, target), strict=True)
        ids = [tokenizer.encode_all([normalize(line) for line in side]) for tokenizer, side in lines]
        numbers, earlier = documents_to_read(run, settings.documents, len(ids[0])), None
        if numbers is not None:
            earlier = earlier_pairs(numbers, list(zip(*ids, strict=True)), run.window)
        pairs = first_ranked(ids[0], ids[1], earlier)
    limits = {"source": run.model.max_source, "target": run.model.max_target}
    made_from = {
        **described_run(run.directory, run.model, run.direction),
        **(made_by or {}),
        **described_files(source, target),
        "search": None if target else search_config(run.settings.search, settings.search),
    }
    return _written(
        files, pairs, limits, settings, drawing, made_from, lambda some: make_maps(run, some, settings.batch_tokens)
    )


def export_encoder_maps(
    encoder: LoadedEncoder, files: MapFiles, settings: MapFileSettings, drawing: Drawing
) -> MapFolder:
    """Like `export_maps`, for a pretrained encoder, which reads source lines without targets.

    Raises Mistake if a target file is given, or if no line has maps.
    """
    if files.target is not None:
        raise Mistake(
            f"target is {files.target}, but {encoder.directory.path} is a pretrained encoder: leave out target."
        )
    lines = encoder.tokenizers.source.encode_all([normalize(line) for line in read_lines(files.source)])
    made_from = {
        **described_run(encoder.directory, encoder.model, None),
        **described_files(files.source, None),
        "target": None,
        "search": None,
    }
    pairs = first_ranked(lines, [[]] * len(lines))
    limits = {"source": encoder.model.max_source}
    return _written(
        files,
        pairs,
        limits,
        settings,
        drawing,
        made_from,
        lambda some: encoder_maps(encoder, some, settings.batch_tokens),
    )


def _written(
    files: MapFiles,
    pairs: Sequence[IdPair],
    limits: Mapping[str, int | None],
    settings: MapFileSettings,
    drawing: Drawing,
    made_from: Mapping[str, Any],
    make_maps: Callable[[Sequence[IdPair]], Iterator[SentenceMaps]],
) -> MapFolder:
    """Writes the maps of all readable pairs; `limits` gives the longest input of the model for each side."""
    source, _, out = files
    reasons = [_why_left_out(pair, limits, settings.max_tokens) for pair in pairs]
    readable = [pair for pair, reason in zip(pairs, reasons, strict=True) if not reason]
    left_out = [(pair, reason) for pair, reason in zip(pairs, reasons, strict=True) if reason]
    if not readable:
        raise Mistake(f"No line of {source} has maps. Line {pairs[0].line}: {reasons[0]}.")
    if len(pairs) > _MANY and drawing.settings.formats:
        logger.warning(
            "Drawing %d sentence pairs takes a long time and makes a large page: use formats=[] to write only the "
            "maps, from which nmt.draw_attention can draw individual lines.",
            len(pairs),
        )

    replaces = (out / MANIFEST).exists()
    maps = Pace("maps made").over(make_maps(readable), len(readable))
    folder = write_maps(out, maps, drawing.sites, {**made_from, "lines": pairs[-1].line})
    if replaces:
        clear(out)
    print(out / MANIFEST)
    if left_out:
        rows = [[str(pair.line), str(pair.rank), reason] for pair, reason in left_out]
        (out / LEFT_OUT).write_text(Table(["line", "rank", "reason"], rows).csv(), encoding="utf-8")
        logger.warning(
            "%d of %d sentence pairs have no maps; %s lists them. Line %d: %s.",
            len(left_out),
            len(pairs),
            out / LEFT_OUT,
            left_out[0][0].line,
            left_out[0][1],
        )
    return folder


def _check_free(out: Path, *, overwrite: bool) -> None:
    """Raises Mistake for maps that must not be replaced, and for a damaged or foreign manifest."""
    if not (out / MANIFEST).exists():
        return
    try:
        MapFolder(out)
    except Mistake as error:
        raise Mistake(
            f"out is {out}, whose {MANIFEST} is damaged or belongs to another program; choose another folder, or "
            "delete the file."
        ) from error
    if not overwrite:
        raise Mistake(
            f"out is {out}, which already contains maps; choose another folder, or replace them with overwrite=true."
        )


def _translated(run: LoadedRun, source: Path, settings: MapFileSettings) -> list[IdPair]:
    """Each source line with every hypothesis of the search, or with an empty target if it is not translated."""
    sources = run.tokenizers.source.encode_all([normalize(line) for line in read_lines(source)])
    translator = build_translator([run], settings.search, settings.batch_tokens)
    short = [ids if len(ids) < settings.max_tokens else [] for ids in sources]
    documents = documents_to_read(run, settings.documents, len(sources))
    found, earlier = translator.search_documents(short, documents, report=Pace("sentences translated"))
    return [
        IdPair(line, rank, ids, target_ids, score, before)
        for line, (ids, hypotheses, before) in enumerate(zip(sources, found, earlier, strict=True), start=1)
        for rank, (target_ids, _, score) in enumerate(hypotheses or [([], 0.0, None)], start=1)
    ]


def _why_left_out(pair: IdPair, limits: Mapping[str, int | None], max_tokens: int) -> str:
    """Why a pair gets no maps, or ''. Lengths are limited because a map grows with their product."""
    sides = {"source": pair.source, "target": pair.target}
    for side, limit in limits.items():
        ids = sides[side]
        pieces = f"the {side} has {len(ids) + 1} pieces with EOS"
        if not ids:
            return f"the {side} is empty"
        if len(ids) >= max_tokens:
            return f"{pieces}, more than max_tokens={max_tokens}"
        if limit is not None and len(ids) >= limit:
            return f"{pieces}, more than the {limit} that the model reads"
    return ""
