"""The options that the engines support, and how engine=auto compares them with torch."""

from typing import get_args

from nmt.config.fields import EngineName
from nmt.config.messages import unknown
from nmt.errors import Mistake
from nmt.exports.extras import check_extra

ENGINE_PRECISIONS = ("float32", "int8")
"""Number formats that every engine supports."""

COMPARED = 20
"""For engine=auto, CTranslate2 has to find torch's translations of at most this many sentences."""

VERDICT = "verdict.json"
"""What this comparison found, in a folder of the cache."""


def check_supported(engine: str, device: str, precision: str, number_of_runs: int) -> None:
    """Raises Mistake for an unknown engine, and for options that it does not support."""
    if engine not in get_args(EngineName):
        raise Mistake(unknown("engine", engine, get_args(EngineName)))
    if number_of_runs > 1:
        raise Mistake(f"engine={engine} translates with one run, not with {number_of_runs}: use engine=torch.")
    if precision not in ENGINE_PRECISIONS:
        raise Mistake(
            f"engine={engine} supports precision={' and '.join(ENGINE_PRECISIONS)}, not {precision}: use one of them, "
            "or engine=torch."
        )
    if engine == "onnx" and device == "cuda":
        raise Mistake("engine=onnx runs on the CPU, but device is cuda: use device=cpu, or another engine.")
    try:
        check_extra(engine)
    except Mistake as error:
        raise Mistake(f"{str(error).rstrip('.')}, or use engine=torch.") from error
