"""Makes the maps of each line of a file and writes them to a folder."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from nmt.config.keys import leaves
from nmt.config.nodes import Node
from nmt.data.corpus import read_parallel
from nmt.data.documents import NO_CONTEXT, ContextWindow, earlier_pairs
from nmt.data.example import Example
from nmt.errors import Mistake
from nmt.files import check_unlocked, write_text
from nmt.insight.forced_maps import IdPair, first_ranked
from nmt.insight.provenance import described_files, described_run
from nmt.maps.attention_map import SentenceMaps
from nmt.maps.drawing import LEFT_OUT, clear
from nmt.maps.map_files import MANIFEST, MapFolder, write_maps
from nmt.pace import Pace
from nmt.paths import check_writable, existing_file
from nmt.runs.encoder import LoadedEncoder
from nmt.runs.engine import search_config
from nmt.runs.load import LoadedRun, documents_to_read
from nmt.runs.search import build_translator
from nmt.tables import Table
from nmt.text import normalize
from nmt.text.lines import read_lines
from nmt.text.tone_marks import tone_marks_of_file

logger = logging.getLogger(__name__)

_EMPTY = "the {} is empty"
# Drawing this many pictures takes minutes.
_MANY = 1000


class MapPaths(NamedTuple):
    """The source file, the target file (None if the search finds the targets), and the folder for the maps."""

    source: Path
    target: Path | None
    out: Path


def checked_paths(source: str, target: str | None, out: str, *, overwrite: bool, given: Sequence[str]) -> MapPaths:
    """The files and the folder, before anything is computed; `given` are the keys that the command line set.

    Raises Mistake for a missing file, for maps that must not be replaced, for a folder whose manifest is not ours, and
    if both a target and search settings are given.
    """
    source_file = existing_file("input", source)
    target_file = None if target is None else existing_file("target", target)
    searched = [key for key in given if key.split(".")[0] == "search"]
    if target_file and searched:
        raise Mistake(f"{searched[0]} has no effect on maps of a given target; leave out one of the two.")
    folder = Path(out)
    check_writable("out", folder)
    check_unlocked(folder)
    if (folder / MANIFEST).exists():
        try:
            MapFolder(folder)
        except Mistake as error:
            raise Mistake(
                f"out is {folder}, whose {MANIFEST} is damaged or belongs to another program; choose another folder, "
                "or delete the file."
            ) from error
        if not overwrite:
            raise Mistake(
                f"out is {folder}, which already contains maps; choose another folder, or replace them with "
                "overwrite=true."
            )
    return MapPaths(source_file, target_file, folder)


def export_maps(
    run: LoadedRun | LoadedEncoder,
    paths: MapPaths,
    make_maps: Callable[[Sequence[IdPair], int], Iterator[SentenceMaps]],
    sites: Mapping[str, Any],
    *,
    search: Node,
    documents: str | None,
    max_tokens: int,
    batch_tokens: int,
    drawn: bool,
    in_context: bool = True,
    made_by: Mapping[str, Any] | None = None,
) -> MapFolder:
    """Writes the maps that `make_maps(pairs, batch_tokens)` makes of each line, and a table of the pairs without maps.

    The targets are the lines of the target file or all hypotheses of the search; a pretrained encoder has none.
    `documents` is a file that says which document each line belongs to. `sites` and `made_by` go into the manifest.
    `drawn` says that the maps will be drawn, which takes long if there are many. If `in_context` is false, each pair is
    read without the sentences before it. Raises Mistake if no line has maps, and for a target, documents or a search
    given to an encoder.
    """
    limits = {"source": run.model.max_source}
    if isinstance(run, LoadedEncoder):
        asked = any(value is not None for value in leaves(search).values())
        for key, given in (("target", paths.target), ("documents", documents), ("search", asked)):
            if given:
                raise Mistake(
                    f"{key} has no effect on {run.directory.path}, which is a pretrained encoder: leave out {key}."
                )
        style = tone_marks_of_file(paths.source, run.settings.tokenizer.tone_marks)
        tokenizer = run.tokenizers.source.in_style(style)
        sources = tokenizer.encode_all([normalize(line) for line in read_lines(paths.source)])
        pairs = first_ranked(sources, [[]] * len(sources))
        origin = {**described_files(paths.source, None), "target": None, "search": None}
    else:
        limits["target"] = run.model.max_target
        pairs = _pairs(run, paths, search, documents, max_tokens, batch_tokens)
        searched = None if paths.target else search_config(run.settings.search, search)
        origin = {**described_files(paths.source, paths.target), "search": searched}
    context_window = NO_CONTEXT if isinstance(run, LoadedEncoder) else run.context_window
    read = pairs if in_context else [pair._replace(earlier=()) for pair in pairs]
    translated = not isinstance(run, LoadedEncoder) and paths.target is None
    nouns = {"source": "source", "target": "translation" if translated else "target"}
    reasons = [_why_left_out(pair, context_window, limits, nouns, max_tokens) for pair in read]
    readable = [pair for pair, reason in zip(pairs, reasons, strict=True) if not reason]
    left_out = [(pair, reason) for pair, reason in zip(pairs, reasons, strict=True) if reason]
    if not readable:
        if set(reasons) == {_EMPTY.format(nouns["target"])} and translated:
            raise Mistake(
                f"{run.directory.path} translates every line of {paths.source} to nothing: train it longer, or give "
                "translations with target=FILE."
            )
        raise Mistake(
            f"No line of {paths.source} has maps. Line {pairs[0].line}: {reasons[0]}. Use a file with at least one "
            "pair whose sides are neither empty nor too long."
        )
    if drawn and len(pairs) > _MANY:
        logger.warning(
            "Drawing %d sentence pairs takes a long time: use formats=[viewer] to write only the maps and the page; "
            "nmt.draw_attention can draw individual lines.",
            len(pairs),
        )

    replaces = (paths.out / MANIFEST).exists()
    maps = Pace("maps made").over(make_maps(readable, batch_tokens), len(readable))
    described = described_run(run.directory, run.model, None if isinstance(run, LoadedEncoder) else run.direction)
    made_from = {**described, **(made_by or {}), **origin, "lines": pairs[-1].line}
    folder = write_maps(paths.out, maps, sites, made_from)
    if replaces:
        clear(paths.out)  # what was drawn from the maps that were replaced
    if left_out:
        rows = [[str(pair.line), str(pair.rank), reason] for pair, reason in left_out]
        write_text(paths.out / LEFT_OUT, Table(["line", "rank", "reason"], rows).csv())
        logger.warning(
            "%d of %d sentence pairs have no maps; %s lists them. Line %d: %s.",
            len(left_out),
            len(pairs),
            paths.out / LEFT_OUT,
            left_out[0][0].line,
            left_out[0][1],
        )
    return folder


def _pairs(
    run: LoadedRun, paths: MapPaths, search: Node, documents: str | None, max_tokens: int, batch_tokens: int
) -> list[IdPair]:
    """Each source line with its target, or with every hypothesis of the search; an empty target if there is none."""
    lines = [read_lines(paths.source)] if paths.target is None else read_parallel(paths.source, paths.target)
    sources = run.tokenizers.source.encode_all([run.source_text(line) for line in lines[0]])
    numbers = documents_to_read(run, documents, len(sources))
    if paths.target is not None:
        targets = run.tokenizers.target.encode_all([normalize(line) for line in lines[1]])
        given = list(zip(sources, targets, strict=True))
        earlier = None if numbers is None else earlier_pairs(numbers, given, run.context_window)
        return first_ranked(sources, targets, earlier)
    # A line that is too long for a map is not translated, unless later lines of its document may read it.
    searched = sources if numbers is not None else [ids if len(ids) < max_tokens else [] for ids in sources]
    translator = build_translator([run], search, batch_tokens)
    translations, contexts = translator.search_documents(searched, numbers, report=Pace("sentences translated"))
    pairs = []
    for line, (ids, hypotheses, pairs_before) in enumerate(zip(sources, translations, contexts, strict=True), start=1):
        context = translator.context_that_fits(ids, pairs_before)
        mapped = hypotheses if len(ids) < max_tokens else []
        pairs += [
            IdPair(line=line, rank=rank, source=ids, target=target, score=score, earlier=context)
            for rank, (target, _, score) in enumerate(mapped or [([], 0.0, None)], start=1)
        ]
    return pairs


def _why_left_out(
    pair: IdPair,
    context_window: ContextWindow,
    limits: Mapping[str, int | None],
    nouns: Mapping[str, str],
    max_tokens: int,
) -> str:
    """Why a pair gets no maps, or ''. Lengths are limited because a map grows with their product.

    `context_window` says how the model reads the earlier pairs; earlier sources that are joined to the source count as
    part of it. `limits` gives the longest input of the model for each side that it reads; `nouns` names the sides.
    """
    example = context_window(Example(0, pair.source, pair.target, pair.earlier))
    for side, own, read in (("source", pair.source, example.source), ("target", pair.target, example.target)):
        if side not in limits:
            continue
        if not own:
            return _EMPTY.format(nouns[side])
        limit, context = limits[side], " and the earlier sentences" if len(read) > len(own) else ""
        pieces = f"the {nouns[side]} has {len(read) + 1} pieces with EOS{context}"
        if len(read) >= max_tokens:
            return f"{pieces}, more than max_tokens={max_tokens}"
        if limit is not None and len(read) >= limit:
            return f"{pieces}, more than the {limit} that the model reads"
    for pair_before in example.earlier:
        for side, ids in zip(limits, context_window.sides_read(pair_before), strict=False):
            limit = limits[side]
            if limit is not None and len(ids) >= limit:
                return (
                    f"the {nouns[side]} of an earlier sentence has {len(ids) + 1} pieces with EOS, more than the "
                    f"{limit} that the model reads"
                )
    return ""
