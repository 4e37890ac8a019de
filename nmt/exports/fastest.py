"""precision=auto: the fastest engine and number format that keep the BLEU of float32, measured once and remembered."""

import logging
import time
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import Field

from nmt.config.stored import Number, Stored, read_stored
from nmt.cores import processor, threads_of_process, usable_cores
from nmt.data.cache import content_key, file_digest
from nmt.data.corpus import Pairs
from nmt.errors import CheckFailed, Mistake
from nmt.exports.engine_choice import chosen_engine, why_not_ctranslate2
from nmt.files import write_json
from nmt.runs.directory import tokenizer_hashes
from nmt.runs.engine import engine_translator, search_config
from nmt.runs.reading import StoredRun, read_run

MOST_BLEU_LOST = 0.2
"""A number format is chosen only if its BLEU is at most this much below that of float32."""

_PRECISIONS = {"torch": ("float32", "bfloat16", "int8"), "ctranslate2": ("float32", "int8")}
_WARM_UP = 8  # sentences

logger = logging.getLogger(__name__)


class Measured(Stored):
    """How fast and how well an engine translates in a number format."""

    engine: str
    precision: str
    sentences_per_second: Annotated[Number, Field(gt=0)]
    bleu: Number


class _Measurements(Stored):
    measured: Annotated[list[Measured], Field(min_length=1)]


class Fastest(NamedTuple):
    """What `fastest` chose."""

    engine: str
    precision: str


def fastest(
    paths: Sequence[str],
    device: str,
    engine: str,
    *,
    search: Mapping[str, Any],
    batch_tokens: int,
    cache_dir: str,
    needs_torch: str | None = None,
) -> Fastest:
    """The fastest precision of an engine for files of text, whose BLEU is at most MOST_BLEU_LOST below float32's.

    With engine='auto', CTranslate2 is measured beside torch if `nmt.exports.engine_choice` would choose it in float32.
    BLEU and speed are those of up to 200 validation pairs, in batches, so a single sentence may be fastest in another
    precision. What was measured is kept in cache_dir/engines for this CPU, these runs and this search. Raises Mistake
    for an engine without a choice of precisions, and if the run has no sentence pairs left to measure with.
    """
    if engine not in (*_PRECISIONS, "auto"):
        raise Mistake(
            f"precision=auto chooses for engine=auto, torch or ctranslate2, not for {engine}: name the precision."
        )
    runs = [read_run(path) for path in paths]
    engines = [engine]
    if engine == "auto":
        reason = needs_torch or (f"{len(runs)} runs translate together" if len(runs) > 1 else None)
        reason = reason or why_not_ctranslate2(runs[0], device, "float32", search, cache_dir)
        engines = ["torch"] if reason else ["torch", "ctranslate2"]
    candidates = [Fastest(name, precision) for name in engines for precision in _PRECISIONS[name]]
    key = _key(runs, device, candidates, search, batch_tokens)
    file = Path(cache_dir) / "engines" / f"precisions-{key}.json"
    measured = _kept(file)
    if not measured:
        logger.info("precision=auto: measuring once how fast and how well %s translates", ", ".join(paths))
        measured = _measure(paths, device, candidates, search, batch_tokens, cache_dir)
        try:
            write_json(file, {"measured": [row.model_dump() for row in measured]})
        except OSError as error:
            logger.warning("precision=auto will measure again next time, because cache_dir is not writable: %s", error)
    best = choose(measured)
    figures = "; ".join(
        f"{row.engine} {row.precision} {row.sentences_per_second:.1f} sentences/s, {row.bleu:.2f} BLEU"
        for row in measured
    )
    logger.info("precision=auto: using engine=%s precision=%s (%s)", best.engine, best.precision, figures)
    return best


def _kept(file: Path) -> list[Measured]:
    """What was measured before; empty if nothing was, or if the file is damaged."""
    try:
        return [Measured(**row) for row in read_stored(file, _Measurements)["measured"]]
    except (FileNotFoundError, Mistake):
        return []


def choose(measured: Sequence[Measured]) -> Fastest:
    """The fastest row whose BLEU is at most MOST_BLEU_LOST below that of the first row, which is float32."""
    least = measured[0].bleu - MOST_BLEU_LOST
    best = max((row for row in measured if row.bleu >= least), key=lambda row: row.sentences_per_second)
    return Fastest(best.engine, best.precision)


def _key(
    runs: Sequence[StoredRun],
    device: str,
    candidates: Sequence[Fastest],
    search: Mapping[str, Any],
    batch_tokens: int,
) -> str:
    """A name for everything that decides which candidate is fastest, and how well it translates."""
    versions = []
    for package in ("nmt", "torch", "ctranslate2"):
        try:
            versions.append(version(package))
        except PackageNotFoundError:
            versions.append("none")
    models = [
        (file_digest(run.directory.weights), tokenizer_hashes(run.tokenizers, run.direction), run.settings.model)
        for run in runs
    ]
    machine = processor(), threads_of_process(usable_cores()), device
    return content_key(
        [models, search_config(runs[0].settings.search, search), batch_tokens, candidates, machine, versions]
    )


def _measure(
    paths: Sequence[str],
    device: str,
    candidates: Sequence[Fastest],
    search: Mapping[str, Any],
    batch_tokens: int,
    cache_dir: str,
) -> list[Measured]:
    """Translates the same sentences with each candidate; those that this machine or run does not support are left out.

    Raises what the first candidate, in float32, raises.
    """
    from nmt.exports.export_run import comparison_pairs
    from nmt.runs.load import load_run

    pairs = comparison_pairs(load_run(Path(paths[0]), "cpu"))
    measured = list[Measured]()
    for engine, precision in candidates:
        try:
            runs, opened = chosen_engine(paths, device, precision, engine, search=search, cache_dir=cache_dir)
            translator = engine_translator(runs[0], opened, search, batch_tokens)
        except (Mistake, CheckFailed) as error:
            if not measured:
                raise
            logger.info("precision=auto: not with engine=%s precision=%s: %s", engine, precision, error)
            continue
        translator.translate(pairs.source[:_WARM_UP])
        start = time.monotonic()
        translations = translator.translate(pairs.source)
        seconds = time.monotonic() - start
        translator.close()
        measured.append(
            Measured(
                engine=engine,
                precision=precision,
                sentences_per_second=round(len(translations) / seconds, 2),
                bleu=round(_bleu(translations, pairs), 2),
            )
        )
    return measured


def _bleu(translations: Sequence[str], pairs: Pairs) -> float:
    from nmt.evaluation.scores import Bleu

    return Bleu(force=True).corpus_score(translations, [pairs.target]).score
