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

FORMATS = ("ctranslate2", "hugging_face", "onnx", "argos")
ENGINES = ("ctranslate2", "onnx")
"""Formats that can translate in place of torch."""


def write_format(trained: Trained, format: str, folder: Path, quantization: str) -> None:
    """Writes a run to a folder that exists.

    Raises ValueError if the format's packages are missing, or if it cannot hold the model or the number format.
    """
    check_extra(format)
    if format == "ctranslate2":
        from nmt.exports.ctranslate2 import write_ctranslate2

        write_ctranslate2(trained, folder, quantization)
    else:
        raise ValueError(f"format is '{format}'; it must be one of {', '.join(FORMATS)}.")


def open_engine(trained: Trained, format: str, folder: Path, precision: str) -> Engine:
    """The engine of a folder that `write_format` wrote."""
    check_extra(format)
    threads = torch.get_num_threads()
    if format == "ctranslate2":
        from nmt.exports.ctranslate2 import CTranslate2Model, CTranslate2Search

        model = CTranslate2Model(folder, trained, threads)
        return Engine(format, precision, model, partial(CTranslate2Search, model))
    raise ValueError(f"engine is '{format}'; it must be torch or one of {', '.join(ENGINES)}.")


def open_exported(trained: Trained, format: str, folder: Path, quantization: str) -> Exported:
    """The exported model as its users run it."""
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
