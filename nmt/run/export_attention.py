"""nmt.export_attention: what a run attends to in every sentence of a file, as data and as what people look at."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from nmt.data.corpus import read_lines, read_parallel
from nmt.evaluation.map_files import MANIFEST, MapFolder, write_maps
from nmt.evaluation.maps import SentenceMaps
from nmt.run.attention_maps import IdPair, first_ranked, forced_maps
from nmt.run.build import Trained, build_translator, load_run, search_config
from nmt.run.compose import Config, Job
from nmt.run.drawing import Drawing, clear, draw
from nmt.run.pace import Pace
from nmt.run.provenance import described_files, described_run, described_sites
from nmt.run.refusals import existing_file, folder_to_write
from nmt.text import Tokenizer, normalize

logger = logging.getLogger(__name__)


def export_attention(job: Job) -> None:
    """Writes the maps of each line, then what `formats` asks for, and prints the paths.

    The maps are those of forced decoding: of the lines of `target`, or of the hypotheses of the search. Raises
    ValueError before anything is searched for what cannot be drawn, and where no line has maps.
    """
    config = job.config
    drawing = Drawing.of(config)
    source, target = _files(job)
    trained = load_run(Path(str(config["run_dir"])), config["device"])
    sites = described_sites(trained.model)
    drawing.check_range(sites)
    out = folder_to_write("out", config["out"])
    _make_room(out, config["overwrite"])
    pairs = _pairs(trained, config, source, target)
    made_from = {
        **described_run(trained.run, trained.model, trained.direction),
        **described_files(source, target),
        "search": None if target else search_config(trained.config["search"], config["search"]),
        "lines": pairs[-1].line if pairs else 0,
    }
    folder = write_maps(out, _watched(trained, pairs, config), sites, made_from)
    _warn_of_missing(folder, pairs, config["max_tokens"])
    if not folder.lines:
        raise ValueError(f"No line of {source} has maps; give lines that have text and are not too long.")
    for line in draw(folder, drawing, out):
        print(line)


def _make_room(out: Path, overwrite: bool) -> None:
    """Deletes what an earlier export has left, if it may. Raises FileExistsError where it may not."""
    if not (out / MANIFEST).exists():
        return
    MapFolder(out)
    if not overwrite:
        raise FileExistsError(
            f"out is {out}, which holds maps; choose another folder, or overwrite=true to replace them."
        )
    clear(out)


def _files(job: Job) -> tuple[Path, Path | None]:
    """The input and the target. Raises FileNotFoundError, and ValueError for settings that do not go with them."""
    config = job.config
    if not isinstance(config["max_tokens"], int) or config["max_tokens"] < 2:
        raise ValueError(f"max_tokens is {config['max_tokens']}; it must be a whole number of at least 2.")
    source = existing_file("input", config["input"])
    if config["target"] is None:
        return source, None
    if searched := [key for key in job.given if key.split(".")[0] == "search"]:
        raise ValueError(f"{searched[0]} has no part in maps of a given target; leave out the one or the other.")
    return source, existing_file("target", config["target"])


def _pairs(trained: Trained, config: Config, source: Path, target: Path | None) -> list[IdPair]:
    """The sources with the given targets, or with each hypothesis of the search."""
    tokenizers = trained.tokenizers
    if target is not None:
        lines = read_parallel(source, target)
        return first_ranked(_encode(tokenizers.source, lines.source), _encode(tokenizers.target, lines.target))
    sources = _encode(tokenizers.source, read_lines(source))
    translator = build_translator([trained], config["search"], config["batch_tokens"])
    readable = [ids if len(ids) < config["max_tokens"] else [] for ids in sources]
    found = translator.search_ids(readable, report=Pace("sentences translated"))
    return [
        IdPair(line, rank, ids, target_ids)
        for line, (ids, hypotheses) in enumerate(zip(sources, found, strict=True), start=1)
        for rank, target_ids in enumerate([hypothesis.ids for hypothesis in hypotheses] or [[]], start=1)
    ]


def _encode(tokenizer: Tokenizer, lines: Sequence[str]) -> list[list[int]]:
    return tokenizer.encode_all([normalize(line) for line in lines])


def _watched(trained: Trained, pairs: Sequence[IdPair], config: Mapping[str, Any]) -> Iterator[SentenceMaps]:
    """The maps of the pairs that are not too long; a map grows with the product of its sides."""
    most = config["max_tokens"]
    short = [pair for pair in pairs if max(len(pair.source), len(pair.target)) < most]
    pace = Pace("maps made")
    for maps in forced_maps(trained, short, config["batch_tokens"]):
        yield maps
        pace(1, len(short))


def _warn_of_missing(folder: MapFolder, pairs: Sequence[IdPair], most: int) -> None:
    there = {(entry["line"], entry["rank"]) for entry in folder.manifest["sentences"]}
    missing = [pair for pair in pairs if (pair.line, pair.rank) not in there]
    if missing:
        logger.warning(
            "No maps of %d sentence pairs with an empty side, or a longer one than the model reads or than "
            "max_tokens=%d pieces; the first is that of line %d.",
            len(missing),
            most,
            missing[0].line,
        )
