"""nmt.export_attention: what a run attends to in every sentence of a file, as data and as what people look at."""

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path

from nmt.config.job import Job
from nmt.config.nodes import Config
from nmt.data.corpus import read_lines, read_parallel
from nmt.files import check_writable, existing_file
from nmt.maps.attention_map import SentenceMaps
from nmt.maps.drawing import Drawing
from nmt.maps.formats import LEFT_OUT, clear, draw
from nmt.maps.map_files import MANIFEST, MapFolder, write_maps
from nmt.pace import Pace
from nmt.runs.forced_maps import IdPair, first_ranked, forced_maps
from nmt.runs.load import Trained, load_run
from nmt.runs.provenance import described_files, described_run, described_sites
from nmt.runs.search import build_translator, search_config
from nmt.tables import Table
from nmt.text import Tokenizer, normalize

logger = logging.getLogger(__name__)

# So many pictures take minutes, and so large a page is slow to open.
_MANY = 1000


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
    out = _free_folder(config)
    pairs = _pairs(trained, config, source, target)
    left_out = [(pair, reason) for pair in pairs if (reason := _reason(pair, trained, config["max_tokens"]))]
    if len(left_out) == len(pairs):
        raise ValueError(f"No line of {source} has maps; the first: {left_out[0][1]}.")
    made_from = {
        **described_run(trained.run, trained.model, trained.direction),
        **described_files(source, target),
        "search": None if target else search_config(trained.config["search"], config["search"]),
        "lines": pairs[-1].line,
    }
    if len(pairs) > _MANY and drawing.formats:
        logger.warning(
            "%d sentence pairs: drawing them takes long, and the page has them all; formats=[] writes the maps alone, "
            "nmt.draw_attention draws some lines of them.",
            len(pairs),
        )
    absent = {(pair.line, pair.rank) for pair, _ in left_out}
    readable = [pair for pair in pairs if (pair.line, pair.rank) not in absent]
    earlier = (out / MANIFEST).exists()
    folder = write_maps(out, _watched(trained, readable, config["batch_tokens"]), sites, made_from)
    if earlier:
        clear(out)
    print(out / MANIFEST)
    _tell(left_out, len(pairs), out)
    for line in draw(folder, drawing, out):
        print(line)


def _free_folder(config: Config) -> Path:
    """The folder to write to. Raises FileExistsError where there are maps that may not be replaced, ValueError for
    another's manifest and where nothing can be written.
    """
    out = Path(str(config["out"]))
    check_writable("out", out)
    if not (out / MANIFEST).exists():
        return out
    try:
        MapFolder(out)
    except ValueError as error:
        raise ValueError(
            f"out is {out}, whose {MANIFEST} is damaged or not one of maps; choose another folder, or delete it."
        ) from error
    if not config["overwrite"]:
        raise FileExistsError(
            f"out is {out}, which holds maps; choose another folder, or overwrite=true to replace them."
        )
    return out


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
        IdPair(line, rank, ids, target_ids, score)
        for line, (ids, hypotheses) in enumerate(zip(sources, found, strict=True), start=1)
        for rank, (target_ids, _, score) in enumerate(hypotheses or [([], 0.0, None)], start=1)
    ]


def _encode(tokenizer: Tokenizer, lines: Sequence[str]) -> list[list[int]]:
    return tokenizer.encode_all([normalize(line) for line in lines])


def _watched(trained: Trained, pairs: Sequence[IdPair], batch_tokens: int) -> Iterator[SentenceMaps]:
    """The maps of the pairs, telling how far it is."""
    pace = Pace("maps made")
    for maps in forced_maps(trained, pairs, batch_tokens):
        yield maps
        pace(1, len(pairs))


def _reason(pair: IdPair, trained: Trained, most: int) -> str:
    """Why a pair has no maps, which grow with the product of its sides; empty where it has."""
    limits = trained.model.max_source, trained.model.max_target
    for name, ids, limit in zip(("source", "target"), (pair.source, pair.target), limits, strict=True):
        pieces = f"{name} of {len(ids) + 1} pieces, EOS counted"
        if not ids:
            return f"empty {name}"
        if len(ids) >= most:
            return f"{pieces}, above max_tokens={most}"
        if limit is not None and len(ids) >= limit:
            return f"{pieces}, above the {limit} that the model reads"
    return ""


def _tell(left_out: Sequence[tuple[IdPair, str]], number: int, out: Path) -> None:
    """Warns of pairs without maps, and lists them with the reasons."""
    if not left_out:
        return
    rows = [[str(pair.line), str(pair.rank), reason] for pair, reason in left_out]
    (out / LEFT_OUT).write_text(Table(["line", "rank", "reason"], rows).csv(), encoding="utf-8")
    logger.warning(
        "No maps of %d of %d sentence pairs; the first is that of line %d: %s. %s lists them.",
        len(left_out),
        number,
        left_out[0][0].line,
        left_out[0][1],
        out / LEFT_OUT,
    )
