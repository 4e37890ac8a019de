"""COMET (Rei et al. 2020) scores translations with a trained network; this module uses the package unbabel-comet."""

import importlib.util
import pickle
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from nmt.errors import Mistake
from nmt.evaluation.score_record import Score
from nmt.evaluation.scores import RESAMPLES, check_lines

_SEED = 12345
"""The seed for resampling, the same as sacrebleu's default."""

_NOT_LOADED = (OSError, KeyError, RuntimeError, EOFError, pickle.UnpicklingError)


class Comet:
    """A COMET model, given as a name on the Hugging Face hub (downloaded on first use) or as the path of a checkpoint.

    Checkpoints are pickles: load only those you trust. Raises Mistake if unbabel-comet is not installed or the model
    cannot be loaded.
    """

    def __init__(self, model: str, gpu: bool = False) -> None:
        if importlib.util.find_spec("comet") is None:
            raise Mistake(
                f"comet={model} needs the package unbabel-comet, which is not installed. Install it in a "
                "separate environment, because it needs numpy below 2: in the project's folder, run "
                "pip install '.[comet]' without constraints.txt."
            )
        from comet import download_model, load_from_checkpoint

        try:
            checkpoint = model if Path(model).is_file() else download_model(model)
            self.model: Any = load_from_checkpoint(checkpoint)
        except Exception as error:
            # COMET raises a plain Exception for a folder without a model, and torch its own for a damaged checkpoint.
            if type(error) is not Exception and not isinstance(error, _NOT_LOADED):
                raise
            raise Mistake(
                f"comet={model} cannot be loaded ({' '.join(str(error).split())}). Use the path of a checkpoint, or "
                "the name of a model on the hub, such as Unbabel/wmt22-comet-da, and check the network connection."
            ) from error
        self.name, self.gpu = model, gpu

    def __call__(self, sources: Sequence[str], hypotheses: Sequence[str], references: Sequence[str]) -> Score:
        """The mean sentence score times 100, with a 95 % interval from resampling the sentences.

        Raises Mistake as `corpus_scores` does.
        """
        check_lines(hypotheses, [references])
        check_lines(hypotheses, [sources], "sources")
        samples = [
            {"src": source, "mt": hypothesis, "ref": reference}
            for source, hypothesis, reference in zip(sources, hypotheses, references, strict=True)
        ]
        prediction = self.model.predict(samples, gpus=int(self.gpu), progress_bar=False)
        scores = 100 * np.asarray(prediction["scores"], dtype=float)
        draws = np.random.default_rng(_SEED).integers(len(scores), size=(RESAMPLES, len(scores)))
        low, high = np.percentile(scores[draws].mean(axis=1), [2.5, 97.5])
        signature = f"model:{self.name}|bs:{RESAMPLES}|seed:{_SEED}|version:{version('unbabel-comet')}"
        return Score("COMET", value=float(scores.mean()), low=float(low), high=float(high), signature=signature)
