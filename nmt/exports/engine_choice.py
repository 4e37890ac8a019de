"""Decides what translates: torch, or an engine with an exported model. Imports torch only if that has work to do."""

import errno
import logging
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from nmt.config.keys import leaves
from nmt.config.stored import Stored, read_stored
from nmt.data.cache import content_key, is_whole
from nmt.decoding.search_settings import BEAM_SEARCH
from nmt.errors import FULL_DISK, Mistake
from nmt.exports.damage import DamagedExport, UnreadableExport
from nmt.exports.engine_options import COMPARED, VERDICT, check_supported
from nmt.exports.export_record import check_files, engine_folder, origin, read_record
from nmt.exports.extras import check_extra, importing, install_command
from nmt.files import remove, write_json
from nmt.paths import cache_folder, check_writable
from nmt.runs.engine import Engine, search_config
from nmt.runs.reading import StoredRun, read_run

MATCHED = "its translations matched torch's"

_GPU_FILES = ("/dev/nvidiactl", "/dev/kfd")
NOT_WRITABLE = (*FULL_DISK, errno.EACCES, errno.EPERM, errno.EROFS)
"""The numbers of the errors of a disk that is full, or of a folder that must not be changed."""

logger = logging.getLogger(__name__)


class _Verdict(Stored):
    unsupported: str | None = None
    """What CTranslate2 lacks for the model. Comparing again cannot change it."""
    refused: str | None = None
    """How the translations differed."""


class Chosen(NamedTuple):
    """What translates, and with which runs."""

    runs: list[StoredRun]
    engine: Engine


def chosen_engine(
    paths: Sequence[str],
    device: str,
    precision: str,
    engine: str,
    *,
    search: Mapping[str, Any],
    cache_dir: str,
    needs_torch: str | None = None,
    begun_with: str | None = None,
) -> Chosen:
    """Opens the runs in these folders with an engine; with 'auto', chooses it and logs why.

    `auto` chooses CTranslate2 if it is installed, if a comparison has found torch's translations, and if it supports
    the request, such as `search`, as in `search_config`. `needs_torch` names a request that only torch supports. A job
    that was begun with another engine goes on with that one. Raises whatever `load_with_engine` raises.
    """
    if engine == "auto":
        run, reason = read_run(paths[0]), needs_torch
        if len(paths) > 1:
            reason = reason or f"{len(paths)} runs translate together"
        if begun_with in (None, "ctranslate2"):
            opened = reason or ctranslate2_or_why_not(run, device, precision, search, cache_dir)
            if isinstance(opened, Engine):
                logger.info("engine=auto: using CTranslate2, whose translations matched torch's")
                return Chosen([run], opened)
            reason = opened
        engine = "torch" if needs_torch else begun_with or "torch"
        logger.info("engine=auto: using %s: %s", engine, "it began the job" if engine == begun_with else reason)
    if engine != "torch":
        check_supported(engine, device, precision, len(paths))
    if engine == "ctranslate2" and _computes_on_cpu(device):
        run = read_run(paths[0])
        if known := _known_export(run, precision, Path(cache_dir)):
            return Chosen([run], known)
    chosen = _with_torch(paths, device, precision, engine)
    if engine == "ctranslate2":
        _record_match(chosen.runs[0], precision, Path(cache_dir))
    return chosen


def why_not_ctranslate2(
    run: StoredRun, device: str, precision: str, search: Mapping[str, Any], cache_dir: str
) -> str | None:
    """The reason to translate with torch; None if CTranslate2 was found to translate like torch with the run.

    They are compared if they have not been before.
    """
    compared = _compared_export(run, device, precision, search, cache_dir)
    return compared if isinstance(compared, str) else None


def ctranslate2_or_why_not(
    run: StoredRun, device: str, precision: str, search: Mapping[str, Any], cache_dir: str
) -> Engine | str:
    """CTranslate2 with the run's model, or what `why_not_ctranslate2` returns."""
    for _ in range(2):
        folder = _compared_export(run, device, precision, search, cache_dir)
        if isinstance(folder, str):
            return folder
        try:
            with importing("ctranslate2"):
                from nmt.exports.ctranslate2_model import ctranslate2_engine
            return ctranslate2_engine(run.tokenizers, folder, "float32", "cpu")
        except DamagedExport:
            remove(folder)  # made by a broken disk or another build of CTranslate2: it is made again, once
        except Mistake as error:
            return str(error).rstrip(".")
    return f"CTranslate2 cannot load {folder}"


def _compared_export(
    run: StoredRun, device: str, precision: str, search: Mapping[str, Any], cache_dir: str
) -> Path | str:
    """The folder of an export that was found to translate like the run, or the reason against it."""
    if precision != "float32":
        return f"precision={precision}"
    if reason := _not_compared(run.settings.search, search_config(run.settings.search, search)):
        return reason
    try:
        if not _computes_on_cpu(device):
            return "there is a GPU" if device == "auto" else f"device={device}"
        if find_spec("ctranslate2") is None:
            return f"CTranslate2, which is often faster, is not installed ({install_command('ctranslate2')} adds it)"
        check_extra("ctranslate2")
        folder = _cached_export(run, origin(run, "ctranslate2", "float32"), Path(cache_dir))
        if not is_whole(folder):
            # Before torch is loaded to compare the two.
            check_writable("cache_dir/engines", folder.parent)
            from nmt.exports.engines import export_checked

            export_checked(run, folder)
        refused = _why_refused(folder)
    except (Mistake, UnreadableExport) as error:
        return str(error).rstrip(".")
    except OSError as error:
        if error.errno not in NOT_WRITABLE:
            raise
        return f"{error.filename or cache_dir}: {error.strerror}"
    return refused or folder


def _with_torch(paths: Sequence[str], device: str, precision: str, engine: str) -> Chosen:
    """Loads the runs' models, for torch itself or for an engine whose export has to be made or compared with them."""
    from nmt.exports.engines import load_with_engine
    from nmt.runs.search import torch_engine

    runs, opened = load_with_engine(paths, device, precision, engine)
    return Chosen([run.stored for run in runs], opened or torch_engine(runs))


def check_precision_of_cluster(engine: str, device: str, precision: str) -> None:
    """Raises Mistake for a precision that torch does not have on the device, which this machine may lack."""
    if engine == "torch" and device != "auto":
        import torch

        from nmt.runs.precision import check_precision

        check_precision(precision, torch.device(device))


def has_gpu_file() -> bool:
    """Whether the driver of a GPU, of any maker, is installed."""
    return any(map(os.path.exists, _GPU_FILES))


def _computes_on_cpu(device: str) -> bool:
    """Whether the CPU translates: with device=auto, if there is no GPU; torch decides whether it can use one."""
    if device != "auto":
        return device == "cpu"
    if has_gpu_file():  # CTranslate2 does not count all that torch uses
        return False
    if find_spec("ctranslate2") is None:
        return True
    with importing("ctranslate2"):
        import ctranslate2
    return not ctranslate2.get_cuda_device_count()


def _not_compared(compared: Mapping[str, Any], search: Mapping[str, Any]) -> str | None:
    """Why the comparison, which used the run's own search, says nothing about this search; None if it does.

    CTranslate2's beams end by another rule, so it finds other translations below the best one.
    """
    if search["_target_"] != BEAM_SEARCH:
        return "the search is not a beam search"
    constraints = search.get("constraints") or {}
    for key, value, usual in (
        ("search.n_best", search.get("n_best"), 1),
        ("search.coverage_penalty", search.get("coverage_penalty"), 0),
        ("search.constraints.min_length", constraints.get("min_length"), 1),
        ("search.constraints.no_repeat_ngram", constraints.get("no_repeat_ngram"), 0),
    ):
        if value is not None and value != usual:
            return f"{key}={value}"
    then, now = leaves(dict(compared), "search"), leaves(dict(search), "search")
    differing = (key for key in then | now if then.get(key, ...) != now.get(key, ...))
    return next((f"the two were compared with another {key}" for key in differing), None)


def _known_export(run: StoredRun, precision: str, cache: Path) -> Engine | None:
    """CTranslate2 with an export that has already been compared with the run: the run's own or the cached one."""
    with importing("ctranslate2"):
        from nmt.exports.ctranslate2_model import ctranslate2_engine

    made_from = origin(run, "ctranslate2", precision)
    folder = engine_folder(run.directory, "ctranslate2", precision)
    record = read_record(folder)
    with suppress(DamagedExport):
        if made_from.items() <= record.items() and _match_file(run, record, cache).is_file():
            check_files(folder, record)
            return ctranslate2_engine(run.tokenizers, folder, precision, "cpu")
    with suppress(DamagedExport):
        folder = _cached_export(run, made_from, cache)
        if precision == "float32" and is_whole(folder) and _why_refused(folder) is None:
            return ctranslate2_engine(run.tokenizers, folder, precision, "cpu")
    return None


def _cached_export(run: StoredRun, made_from: Mapping[str, Any], cache: Path) -> Path:
    """The folder of the cache for a run's export; its name changes with everything that the export depends on."""
    settings = run.settings
    parts = dict(made_from), settings.model, settings.search, version("ctranslate2"), COMPARED
    return cache / "engines" / content_key(parts)


def _why_refused(folder: Path) -> str | None:
    """Why the export in a folder of the cache does not translate; None if it translates like torch."""
    verdict = _Verdict.model_validate(read_stored(folder / VERDICT, _Verdict))
    if verdict.unsupported:
        return f"CTranslate2 {verdict.unsupported}"
    return f"{verdict.refused}; delete {folder} to compare them again" if verdict.refused else None


def _match_file(run: StoredRun, record: Mapping[str, Any], cache: Path) -> Path:
    """The cache file that marks the run's own export, described by `record`, as matching the run.

    The record comes with the run, so it proves nothing by itself.
    """
    parts = sorted(record.items()), run.settings.model, version("ctranslate2")
    return cache / "engines" / f"{content_key(parts)}.json"


def _record_match(run: StoredRun, precision: str, cache: Path) -> None:
    """Notes that the run's own export has been compared with the run, so that the next command needs no torch."""
    record = read_record(engine_folder(run.directory, "ctranslate2", precision))
    try:
        file = _match_file(run, record, cache_folder(cache))
        if record and not file.is_file():
            file.parent.mkdir(exist_ok=True)
            write_json(file, {"run": str(run.directory.path)})
    except (OSError, Mistake) as error:
        logger.debug("Could not record that the export matches the run: %s", error)
