"""The formats of nmt.export: how each one is written, and how the result is opened."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from nmt.cores import threads_of_process, usable_cores
from nmt.errors import Mistake
from nmt.exports.extras import check_extra, importing
from nmt.exports.folding import require_marian_or_pegasus, require_plain_transformer, require_two_graphs
from nmt.exports.parity import Exported, comparison_search, stepwise_log_probs
from nmt.runs.engine import Engine
from nmt.runs.forced_batches import forced_log_probs
from nmt.runs.load import LoadedRun, load_run
from nmt.runs.search import build_translator, model_search


class Format(NamedTuple):
    """A format of nmt.export. Its libraries are optional, so they are only imported inside its functions."""

    quantizations: tuple[str, ...]
    """The number formats in which it can store the weights."""
    check: Callable[[LoadedRun], object]
    """Raises Mistake for a model that it does not support, even if its libraries are missing."""
    write: Callable[[LoadedRun, Path, str], None]
    """Writes a run to an existing folder, with the weights in a number format."""
    open: Callable[[LoadedRun, Path, str], Exported]
    """Opens the exported model the way its users do."""


def write_format(run: LoadedRun, format: str, folder: Path, quantization: str) -> None:
    """Writes a run to an existing folder.

    Raises Mistake if the format does not support the model or the number format, or if its packages are missing or
    broken.
    """
    known = FORMATS[format].quantizations
    if quantization not in known:
        raise Mistake(f"quantization is {quantization}, but with format={format} it must be {' or '.join(known)}.")
    # Before the packages, which nobody should install for a model that they cannot hold.
    FORMATS[format].check(run)
    check_extra(format)
    with importing(format):
        FORMATS[format].write(run, folder, quantization)


def open_exported(run: LoadedRun, format: str, folder: Path, quantization: str) -> Exported:
    """Opens an export the way its users do; for an Argos package, opens the CTranslate2 model in it.

    Raises Mistake if the format's packages are missing or broken.
    """
    with importing(format):
        return FORMATS[format].open(run, folder, quantization)


def open_engine(run: LoadedRun, engine: str, folder: Path, precision: str) -> Engine:
    """The engine for a folder that `write_format` wrote.

    Raises Mistake if the engine's packages are missing or broken, and DamagedExport if the folder cannot be read.
    """
    check_extra(engine)
    with importing(engine):
        return ENGINES[engine](run, folder, precision)


def _write_ctranslate2(run: LoadedRun, folder: Path, quantization: str) -> None:
    from nmt.exports.ctranslate2 import write_ctranslate2

    write_ctranslate2(run, folder, quantization)


def _ctranslate2_engine(run: LoadedRun, folder: Path, precision: str) -> Engine:
    from nmt.exports.ctranslate2_model import ctranslate2_engine

    return ctranslate2_engine(run.tokenizers, folder, precision, run.device.type)


def _write_hugging_face(run: LoadedRun, folder: Path, quantization: str) -> None:
    from nmt.exports.hugging_face import write_hugging_face

    write_hugging_face(run, folder)


def _open_hugging_face(run: LoadedRun, folder: Path, quantization: str) -> Exported:
    from nmt.exports.hugging_face import HuggingFaceModel, generation_settings

    model = HuggingFaceModel(folder)
    model.search_with(generation_settings(run, comparison_search(run)))
    return Exported(model.max_source, model.max_target, model.forced_log_probs, model.translate)


def _write_onnx(run: LoadedRun, folder: Path, quantization: str) -> None:
    from nmt.exports.onnx import write_onnx

    write_onnx(run, folder, int8=quantization == "int8")


def _onnx_engine(run: LoadedRun, folder: Path, precision: str) -> Engine:
    from nmt.exports.onnx_model import OnnxModel

    model = OnnxModel(folder, threads_of_process(usable_cores()))
    return Engine(
        name="onnx",
        precision=precision,
        device="cpu",
        max_source=model.max_source,
        max_target=model.max_target,
        bind=partial(model_search, model),
        forced_log_probs=partial(stepwise_log_probs, model),
    )


def _write_argos(run: LoadedRun, folder: Path, quantization: str) -> None:
    from nmt.exports.argos import write_argos

    write_argos(run, folder, quantization)


def _open_argos(run: LoadedRun, folder: Path, quantization: str) -> Exported:
    from nmt.exports.argos import unpacked_model

    with unpacked_model(folder) as model:
        return _exported(run, _ctranslate2_engine(run, model, quantization))


def _write_run(run: LoadedRun, folder: Path, quantization: str) -> None:
    from nmt.exports.small_run import write_small_run

    write_small_run(run, folder, quantization)


def _open_run(run: LoadedRun, folder: Path, quantization: str) -> Exported:
    small = load_run(folder, "cpu")
    translator = build_translator([small], comparison_search(run), verbatim=True)
    return Exported(None, None, partial(forced_log_probs, [small]), translator.translate)


def _exported(run: LoadedRun, engine: Engine) -> Exported:
    """The exported model that an engine runs."""
    translator = build_translator([run], comparison_search(run), engine=engine, verbatim=True)
    return Exported(engine.max_source, engine.max_target, engine.forced_log_probs, translator.translate)


def _opened_by(engine_of: Callable[[LoadedRun, Path, str], Engine]) -> Callable[[LoadedRun, Path, str], Exported]:
    """A function that opens the exported model with an engine."""
    return lambda run, folder, quantization: _exported(run, engine_of(run, folder, quantization))


_OF_CTRANSLATE2 = ("float32", "int8", "int16", "float16", "bfloat16")
FORMATS = {
    "ctranslate2": Format(
        quantizations=_OF_CTRANSLATE2,
        check=partial(require_plain_transformer, format="ctranslate2"),
        write=_write_ctranslate2,
        open=_opened_by(_ctranslate2_engine),
    ),
    "hugging_face": Format(
        quantizations=("float32",),
        check=require_marian_or_pegasus,
        write=_write_hugging_face,
        open=_open_hugging_face,
    ),
    "onnx": Format(
        quantizations=("float32", "int8"),
        check=require_two_graphs,
        write=_write_onnx,
        open=_opened_by(_onnx_engine),
    ),
    "argos": Format(
        quantizations=_OF_CTRANSLATE2,
        check=partial(require_plain_transformer, format="argos"),
        write=_write_argos,
        open=_open_argos,
    ),
    "run": Format(
        quantizations=("float32", "int8"),
        check=lambda run: None,
        write=_write_run,
        open=_open_run,
    ),
}
ENGINES = {"ctranslate2": _ctranslate2_engine, "onnx": _onnx_engine}
"""The function that opens the engine, for each format that can translate in place of torch."""
