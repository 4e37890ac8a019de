"""The probe sentences of a training: their attention maps at each validation, and the page that plays them."""

import torch
from lightning.pytorch.callbacks import Callback

from nmt.data.corpus import Pairs
from nmt.evaluation.map_files import MapFolder, write_maps
from nmt.evaluation.viewer import ViewedRun, write_viewer
from nmt.models import Seq2Seq
from nmt.run.attention_maps import IdPair, forced_maps
from nmt.run.build import Trained
from nmt.run.described import described_sites
from nmt.run.drawing import run_name
from nmt.run.rundir import RunDirectory
from nmt.run.settings import Settings
from nmt.text import TokenizerPair, normalize
from nmt.training.probes import AttentionProbes

# Longer ones make no good picture.
_MOST_PIECES = 60
_FOLDER = "probes"


class Probes:
    """The first validation pairs that are short enough to look at, as many as validation.probes says."""

    def __init__(
        self, settings: Settings, run: RunDirectory, tokenizers: TokenizerPair, model: Seq2Seq, valid: Pairs
    ) -> None:
        self._settings, self._run, self._tokenizers, self._model = settings, run, tokenizers, model
        number = settings.config["validation"]["probes"]
        ids = [
            tokenizer.encode_all([normalize(line) for line in lines])
            for tokenizer, lines in zip(tokenizers, valid, strict=True)
        ]
        pairs = [IdPair(line, 1, *pair) for line, pair in enumerate(zip(*ids, strict=True), start=1)]
        short = [pair for pair in pairs if all(0 < len(side) < _MOST_PIECES for side in (pair.source, pair.target))]
        self._pairs = short[:number]

    def callbacks(self) -> list[Callback]:
        """What a trainer calls; nothing where there is no sentence to look at."""
        return [AttentionProbes(self.write)] if self._pairs else []

    def write(self, step: int, device: torch.device) -> None:
        """Writes the maps at a step of training."""
        config, direction = self._settings.config, self._settings.direction
        trained = Trained(self._run, config, direction, self._tokenizers, self._model, device)
        origin = {
            "run_dir": str(self._run.path),
            "step": step,
            "seed": config["seed"],
            "direction": str(direction),
            "model": type(self._model).__name__,
            "input": f"{self._settings.splits.valid}.{direction.source}",
            "target": f"{self._settings.splits.valid}.{direction.target}",
            "lines": self._pairs[-1].line,
        }
        sentences = forced_maps(trained, self._pairs, batch_tokens=_MOST_PIECES**2)
        write_maps(self._run.path / _FOLDER / f"step_{step:07}", sentences, described_sites(self._model), origin)


def write_film(run: RunDirectory) -> None:
    """Writes the page that plays the probes of all steps, if there are any."""
    folders = [MapFolder(step) for step in sorted((run.path / _FOLDER).glob("step_*"))]
    if folders:
        write_viewer(
            run.path / _FOLDER / "viewer.html",
            [ViewedRun(run_name(folder), folder.sentences()) for folder in folders],
        )
