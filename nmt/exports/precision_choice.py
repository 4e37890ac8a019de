"""precision=auto: the fastest engine and precision that keep the BLEU of float32, measured once and remembered."""

import logging
import os
import time
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any, NamedTuple, get_args

from pydantic import Field

from nmt.config.fields import Precision
from nmt.config.stored import Number, Stored, read_stored
from nmt.cores import processor, threads_of_process, usable_cores
from nmt.data.cache import content_key, file_digest, making
from nmt.data.corpus import Pairs
from nmt.decoding.search_settings import BEAM_SEARCH
from nmt.errors import CheckFailed, MissingFile, Mistake
from nmt.exports.damage import UnreadableExport, Unsupported
from nmt.exports.engine_choice import NOT_WRITABLE, chosen_engine, has_gpu_file, why_not_ctranslate2
from nmt.exports.engine_options import ENGINE_PRECISIONS
from nmt.files import write_json
from nmt.pace import Pace
from nmt.paths import cache_folder, check_writable
from nmt.runs.directory import tokenizer_hashes
from nmt.runs.engine import engine_translator, search_config
from nmt.runs.reading import StoredRun, read_run

MOST_BLEU_LOST = 0.2
"""A precision is chosen only if its BLEU is at most this much below that of float32."""
LEAST_GAIN = 1.05
"""A precision other than float32 is chosen only if it is this many times as fast, because measuring is inexact."""

_MEASUREMENT = 1  # to be raised if older measurements are no longer valid
_PRECISIONS: Mapping[str, Sequence[str]] = {"torch": get_args(Precision), "ctranslate2": ENGINE_PRECISIONS}
_WARM_UP = 8  # sentences that are translated before the time is measured
_PASSES = 2  # times that all sentences are translated
_VARIABLES = ("ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA")

logger = logging.getLogger(__name__)


class EngineAndPrecision(NamedTuple):
    """An engine, and the precision in which it translates."""

    engine: str
    precision: str


class Measured(Stored):
    """How fast and how well an engine translates in a precision."""

    engine: str
    precision: str
    sentences_per_second: Annotated[Number, Field(gt=0)]
    bleu: Number


class _Measurements(Stored):
    measured: Annotated[list[Measured], Field(min_length=1)]


class _Conditions(NamedTuple):
    """What everything is measured with."""

    paths: Sequence[str]
    device: str
    search: Mapping[str, Any]
    batch_tokens: int
    workers: int
    verbatim: bool
    cache_dir: str


def fastest_precision(
    paths: Sequence[str],
    device: str,
    engine: str,
    *,
    search: Mapping[str, Any],
    batch_tokens: int,
    workers: int = 1,
    verbatim: bool = False,
    cache_dir: str,
    needs_torch: str | None = None,
) -> EngineAndPrecision:
    """The fastest precision of an engine on the CPU, among those that keep the BLEU of float32 (see `choose`).

    With engine='auto', CTranslate2 is measured beside torch if `nmt.exports.engine_choice` would choose it in float32.
    Speed and BLEU are those of up to 200 validation pairs, in batches: a single sentence may be fastest in another
    precision. What was measured is kept in cache_dir/engines for the same CPU, number of threads, versions, models,
    search and size of batches. Raises Mistake for a GPU, for an engine without a choice of precisions, for a
    search other than beam search, and if there are no sentence pairs to measure with.
    """
    if engine not in (*_PRECISIONS, "auto"):
        raise Mistake(
            f"precision=auto chooses for engine=auto, torch or ctranslate2, not for {engine}: name the precision."
        )
    if device == "cuda" or (device == "auto" and has_gpu_file()):
        raise Mistake(
            f"precision=auto measures the CPU, but {'there is a GPU' if device == 'auto' else 'device is cuda'}: use "
            "precision=float32 or bfloat16, or add device=cpu."
        )
    runs = [read_run(path) for path in paths]
    if search_config(runs[0].settings.search, search)["_target_"] != BEAM_SEARCH:
        raise Mistake("precision=auto compares translations of beam search: add search=beam, or name the precision.")
    engines = [engine]
    if engine == "auto":
        reason = needs_torch or (f"{len(runs)} runs translate together" if len(runs) > 1 else None)
        reason = reason or why_not_ctranslate2(runs[0], device, "float32", search, cache_dir)
        engines = ["torch"] if reason else ["torch", "ctranslate2"]
        if reason:
            logger.info("precision=auto: only torch is measured: %s", reason)
    candidates = [EngineAndPrecision(name, precision) for name in engines for precision in _PRECISIONS[name]]
    conditions = _Conditions(paths, device, search, batch_tokens, workers, verbatim, cache_dir)
    measured = _measured_once(runs, candidates, conditions)
    best = choose(measured)
    figures = "; ".join(
        f"{row.engine} {row.precision} {row.sentences_per_second:.1f} sentences/s, {row.bleu:.2f} BLEU"
        for row in measured
    )
    logger.info("precision=auto: using engine=%s precision=%s (%s)", *best, figures)
    return best


def choose(measured: Sequence[Measured]) -> EngineAndPrecision:
    """The fastest candidate within MOST_BLEU_LOST; the fastest float32 one unless the gain is at least LEAST_GAIN.

    The first row is float32; its BLEU is the reference.
    """
    keep_bleu = [row for row in measured if round(measured[0].bleu - row.bleu, 2) <= MOST_BLEU_LOST]
    full = max((row for row in keep_bleu if row.precision == "float32"), key=lambda row: row.sentences_per_second)
    best = max(keep_bleu, key=lambda row: row.sentences_per_second)
    if best.sentences_per_second < LEAST_GAIN * full.sentences_per_second:
        best = full
    return EngineAndPrecision(best.engine, best.precision)


def _measured_once(
    runs: Sequence[StoredRun], candidates: Sequence[EngineAndPrecision], conditions: _Conditions
) -> list[Measured]:
    """What was measured before under the same conditions; else measures, while other processes wait."""
    name = f"precisions-{_key(runs, candidates, conditions)}.json"
    file = cache_folder(conditions.cache_dir) / "engines" / name
    if measured := _kept(file):
        return measured
    shown = ", ".join(conditions.paths)
    check_writable("cache_dir/engines", file.parent)
    with making(file, task=f"measuring {shown}"):
        if measured := _kept(file):
            return measured
        logger.info("precision=auto: measuring once how fast and how well %s translates", shown)
        measured, complete = _measure(runs, candidates, conditions)
        if complete:
            write_json(file, {"measured": [row.model_dump() for row in measured]})
        return measured


def _kept(file: Path) -> list[Measured]:
    """What was measured before; empty if nothing was, or if the file is damaged."""
    try:
        return [Measured(**row) for row in read_stored(file, _Measurements)["measured"]]
    except (OSError, Mistake):
        return []


def _key(runs: Sequence[StoredRun], candidates: Sequence[EngineAndPrecision], conditions: _Conditions) -> str:
    """A name for everything that decides how fast and how well the candidates translate."""
    versions = []
    for package in ("nmt-attention", "torch", "ctranslate2"):
        try:
            versions.append(version(package))
        except PackageNotFoundError:
            versions.append("none")
    models = [
        (
            file_digest(run.directory.weights),
            tokenizer_hashes(run.tokenizers, run.direction),
            run.dictionary.digest,
            run.settings.model,
        )
        for run in runs
    ]
    search = search_config(runs[0].settings.search, conditions.search)
    machine = processor(), threads_of_process(usable_cores()), [os.environ.get(name) for name in _VARIABLES]
    batches = conditions.batch_tokens, conditions.workers, conditions.verbatim
    return content_key([_MEASUREMENT, models, search, batches, candidates, machine, versions])


def _measure(
    runs: Sequence[StoredRun], candidates: Sequence[EngineAndPrecision], conditions: _Conditions
) -> tuple[list[Measured], bool]:
    """Measures each candidate that works here. The second value is true if the others would fail again, so that the
    result can be remembered.

    Raises what the first candidate, in float32, raises, and Mistake if there is nothing to translate.
    """
    import torch

    from nmt.exports.export_run import comparison_pairs
    from nmt.exports.parity import Differs
    from nmt.runs.precision import check_precision

    try:
        pairs = comparison_pairs(runs[0])
    except MissingFile as error:
        raise Mistake(
            f"precision=auto measures with the validation corpus, which is missing ({error.__cause__}): name the "
            "precision."
        ) from error
    measured, complete = list[Measured](), True
    for candidate in candidates:
        try:
            if candidate.engine == "torch":
                check_precision(candidate.precision, torch.device("cpu"))
        except Mistake as error:
            logger.info("precision=auto: without %s: %s", candidate.precision, error)
            continue
        try:
            measured.append(_measure_one(candidate, pairs, conditions))
        except (Mistake, CheckFailed, UnreadableExport, OSError) as error:
            if not measured or (isinstance(error, OSError) and error.errno not in NOT_WRITABLE):
                raise
            complete = complete and isinstance(error, (Unsupported, Differs))
            logger.info("precision=auto: without engine=%s precision=%s: %s", *candidate, error)
    return measured, complete


def _measure_one(candidate: EngineAndPrecision, pairs: Pairs, conditions: _Conditions) -> Measured:
    """Translates the sources twice, and takes the faster time."""
    from nmt.evaluation.scores import Bleu

    engine, precision = candidate
    search = conditions.search
    runs, opened = chosen_engine(
        conditions.paths, conditions.device, precision, engine, search=search, cache_dir=conditions.cache_dir
    )
    translator = engine_translator(
        runs[0],
        opened,
        search,
        conditions.batch_tokens,
        workers=conditions.workers,
        verbatim=conditions.verbatim,
    )
    try:
        translator.translate(pairs.source[:_WARM_UP])
        seconds, translations = list[float](), list[str]()
        for _ in range(_PASSES):
            start = time.monotonic()
            translations = translator.translate(
                pairs.source, report=Pace(f"sentences translated with {engine} in {precision}")
            )
            seconds.append(time.monotonic() - start)
    finally:
        translator.close()
    return Measured(
        engine=engine,
        precision=precision,
        sentences_per_second=round(len(pairs.source) / min(seconds), 2),
        bleu=round(Bleu(force=True).corpus_score(translations, [pairs.target]).score, 2),
    )
