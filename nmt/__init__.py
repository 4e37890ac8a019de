"""An attention laboratory for machine translation: models, attention scores, training and search as separate parts."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nmt.decoding.translator import Translator


def load(run_dir: str | Path, device: str = "auto") -> "Translator":
    """The translator of a finished run: load(run_dir).translate(["Good morning."]).

    Raises FileNotFoundError or ValueError when the folder is not the directory of a finished run.
    """
    # Imported here so that `import nmt` stays free of torch.
    from nmt.run.build import build_translator, load_run

    return build_translator([load_run(Path(run_dir), device)])
