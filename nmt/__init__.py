"""An attention laboratory for machine translation, with separate parts for models, scoring, training and search."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nmt.run import Run

__version__ = "0.1.0"


def load(
    run_dir: str | Path | Sequence[str | Path], device: str = "auto", precision: str = "float32", engine: str = "torch"
) -> "Run":
    """Loads a finished run, or several as an ensemble; the result has methods such as translate, attend and score.

    `precision` is float32, bfloat16, or int8 on a CPU. `engine` (torch, ctranslate2 or onnx) computes the translations;
    torch always computes everything else. Raises Mistake if a folder is not the directory of a
    finished run, or if the device, the precision or the engine cannot be used.
    """
    # Imported here so that `import nmt` stays free of torch.
    from nmt.exports.engines import load_with_engine
    from nmt.run import Run

    paths = [run_dir] if isinstance(run_dir, (str, Path)) else list(run_dir)
    return Run(*load_with_engine(paths, device, precision, engine))
