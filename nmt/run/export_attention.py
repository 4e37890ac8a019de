"""nmt.export_attention: what a run attends to in every sentence of a file, as data and as what people look at."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from nmt.data.corpus import read_lines, read_parallel
from nmt.evaluation.map_files import MapFolder, write_maps
from nmt.evaluation.maps import SentenceMaps
from nmt.run.attention_maps import IdPair, first_ranked, forced_maps
from nmt.run.build import Trained, build_translator, load_run
from nmt.run.compose import Config, Job
from nmt.run.described import described_run, described_sites
from nmt.run.drawing import Drawing, draw
from nmt.run.pace import Pace
from nmt.run.refusals import existing_file
from nmt.text import Tokenizer, normalize

logger = logging.getLogger(__name__)


def export_attention(job: Job) -> None:
    """Writes the maps of each line, then what `formats` asks for, and prints the paths.

    The maps are those of forced decoding: of the lines of `target`, or of the hypotheses of the search. Raises
    ValueError for a site, a layer or a head that the model does not have, before anything is searched.
    """
    config = job.config
    drawing = Drawing.of(config)
    if not isinstance(config["max_tokens"], int) or config["max_tokens"] < 2:
        raise ValueError(f"max_tokens is {config['max_tokens']}; it must be a whole number of at least 2.")
    trained = load_run(Path(str(config["run_dir"])), config["device"])
    sites = described_sites(trained.model)
    drawing.check_range(sites)
    source_file = existing_file("input", config["input"])
    pairs = _pairs(trained, config, source_file)
    out = Path(str(config["out"]))
    lines = pairs[-1].line if pairs else 0
    origin = described_run(trained, source_file, config["target"], lines)
    folder = write_maps(out, _watched(trained, pairs, config), sites, origin)
    _warn_of_missing(folder, pairs, config["max_tokens"])
    for path in draw(folder, drawing, out):
        print(path)


def _pairs(trained: Trained, config: Config, source_file: Path) -> list[IdPair]:
    """The sources with the given targets, or with each hypothesis of the search."""
    tokenizers = trained.tokenizers
    if config["target"] is not None:
        lines = read_parallel(source_file, existing_file("target", config["target"]))
        return first_ranked(_encode(tokenizers.source, lines.source), _encode(tokenizers.target, lines.target))
    sources = _encode(tokenizers.source, read_lines(source_file))
    translator = build_translator([trained], config["search"], config["batch_tokens"])
    readable = [ids if len(ids) < config["max_tokens"] else [] for ids in sources]
    found = translator.search_ids(readable, report=Pace("sentences translated"))
    return [
        IdPair(line, rank, source, ids)
        for line, (source, hypotheses) in enumerate(zip(sources, found, strict=True), start=1)
        for rank, ids in enumerate([hypothesis.ids for hypothesis in hypotheses] or [[]], start=1)
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
    if missing := sorted({pair.line for pair in pairs} - set(folder.lines)):
        logger.warning(
            "No maps of %d lines that are empty, or longer than the model reads or than max_tokens=%d pieces; the "
            "first is line %d.",
            len(missing),
            most,
            missing[0],
        )
