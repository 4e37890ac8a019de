"""The formats of nmt.export: how each is written, and how it is run again."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import torch

from nmt.exports.extras import check_extra
from nmt.exports.parity import Exported, stepwise_log_probs
from nmt.runs.load import Trained
from nmt.runs.search import Engine, build_translator

QUANTIZATIONS = {
    "ctranslate2": ("float32", "int8", "int16", "float16", "bfloat16"),
    "hugging_face": ("float32",),
    "onnx": ("float32", "int8"),
    "argos": ("float32", "int8", "int16", "float16", "bfloat16"),
}
"""The number formats of each format."""
FORMATS = tuple(QUANTIZATIONS)
ENGINES = ("ctranslate2", "onnx")
"""Formats that can translate in place of torch."""


def write_format(trained: Trained, format: str, folder: Path, quantization: str) -> None:
    """Writes a run to a folder that exists.

    Raises ValueError if the format's packages are missing, or if it cannot hold the model or the number format.
    """
    check_extra(format)
    if quantization not in QUANTIZATIONS[format]:
        known = ", ".join(QUANTIZATIONS[format])
        raise ValueError(f"quantization is {quantization}, but format={format} has {known}.")
    if format == "ctranslate2":
        from nmt.exports.ctranslate2 import write_ctranslate2

        write_ctranslate2(trained, folder, quantization)
    elif format == "hugging_face":
        from nmt.exports.hugging_face import write_hugging_face

        write_hugging_face(trained, folder)
    elif format == "onnx":
        from nmt.exports.onnx import write_onnx

        write_onnx(trained, folder, None if quantization == "float32" else quantization)
    else:
        from nmt.exports.argos import write_argos

        write_argos(trained, folder, quantization)


def open_engine(trained: Trained, format: str, folder: Path, precision: str) -> Engine:
    """The engine of a folder that `write_format` wrote."""
    check_extra(format)
    threads = torch.get_num_threads()
    if format == "ctranslate2":
        from nmt.exports.ctranslate2 import CTranslate2Model, CTranslate2Search

        model = CTranslate2Model(folder, trained, threads)
        return Engine(format, precision, model, partial(CTranslate2Search, model))
    if format == "onnx":
        from nmt.exports.onnx_model import OnnxModel

        return Engine(format, precision, OnnxModel(folder, threads), lambda search: search)
    raise ValueError(f"engine is '{format}'; it must be torch or one of {', '.join(ENGINES)}.")


def open_exported(trained: Trained, format: str, folder: Path, quantization: str) -> Exported:
    """The exported model as its users run it; of an Argos package, the CTranslate2 model in it."""
    if format == "hugging_face":
        from nmt.exports.hugging_face import HuggingFaceModel

        return HuggingFaceModel(folder)
    if format == "argos":
        from nmt.exports.argos import unpacked_model

        with unpacked_model(folder) as model:
            return open_exported(trained, "ctranslate2", model, quantization)
    return _OfEngine(trained, open_engine(trained, format, folder, quantization))


class _OfEngine(NamedTuple):
    """What an engine computes of a run."""

    trained: Trained
    engine: Engine

    def forced_log_probs(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[list[float]]:
        model = self.engine.model
        known = getattr(model, "forced_log_probs", None)
        return known(sources, targets) if known else stepwise_log_probs(model, sources, targets)

    def translate(self, lines: Sequence[str]) -> list[str]:
        return build_translator([self.trained], engine=self.engine).translate(lines)
