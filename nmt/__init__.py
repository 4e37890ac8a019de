"""An attention laboratory for machine translation, with separate parts for models, scoring, training and search."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nmt.run import Run

__version__ = "0.1.0"


def load(
    run_dir: str | Path | Sequence[str | Path],
    device: str = "auto",
    precision: str = "float32",
    engine: str = "torch",
    dictionary: str | Path | Mapping[str, str] | None = None,
) -> "Run":
    """Loads a finished run, or several as an ensemble; the result has methods such as translate, attend and score.

    `precision` is float32, bfloat16, or int8 on a CPU. `engine` (torch, ctranslate2 or onnx) computes the translations;
    torch always computes everything else. `dictionary` maps words and phrases to translations, or names a file with
    a word or phrase, a tab and its translation in each line; it is added to the dictionary of the run, and takes
    precedence. Raises Mistake if a folder is not the directory of a finished run, or if the device, the precision, the
    engine or the dictionary cannot be used.
    """
    # Imported here so that `import nmt` stays free of torch.
    from nmt.exports.engines import load_with_engine
    from nmt.paths import existing_file
    from nmt.run import Run
    from nmt.text.dictionary import NO_DICTIONARY, Dictionary

    if dictionary is None:
        own = NO_DICTIONARY
    elif isinstance(dictionary, (str, Path)):
        own = Dictionary.load(existing_file("dictionary", dictionary))
    else:
        own = Dictionary.from_mapping(dictionary)
    paths = [run_dir] if isinstance(run_dir, (str, Path)) else list(run_dir)
    runs, translating = load_with_engine(paths, device, precision, engine)
    return Run([run._replace(dictionary=run.stored.dictionary_with(own)) for run in runs], translating)
