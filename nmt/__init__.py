"""An attention laboratory for machine translation: models, scoring functions, training and search as separate parts."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nmt.runs.pretrained import Pretrained


def load(run_dir: str | Path | Sequence[str | Path], device: str = "auto", precision: str = "float32") -> "Pretrained":
    """A finished run, or several as an ensemble, with the methods translate, attend and score.

    `precision` is float32, bfloat16, or int8 on a CPU.
    Raises FileNotFoundError or ValueError if a folder is not the directory of a finished run, or the device or the
    precision cannot be used.
    """
    # Imported here so that `import nmt` stays free of torch.
    from nmt.runs.pretrained import Pretrained

    return Pretrained(run_dir, device, precision)
