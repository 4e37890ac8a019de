"""The probe sentences of a training: their attention maps at each validation, and the page that plays them."""

import logging
import shutil
from pathlib import Path

import torch
from lightning.pytorch.callbacks import Callback

from nmt.data.corpus import Pairs, file_pair
from nmt.maps.map_files import MapFolder, map_folders, write_maps
from nmt.maps.viewer import viewed_runs, write_viewer
from nmt.models import Seq2Seq
from nmt.runs.directory import RunDirectory
from nmt.runs.forced_maps import IdPair, forced_maps
from nmt.runs.load import Trained
from nmt.runs.provenance import described_files, described_run, described_sites
from nmt.text import TokenizerPair, normalize
from nmt.training.probes import AttentionProbes
from nmt.training.settings import Settings

logger = logging.getLogger(__name__)

# Longer ones make no good picture.
_MOST_PIECES = 60
# So that a long training's film stays one that can be opened.
_MOST_STEPS = 100
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
        """Writes the maps at a step of training; of very many steps every second one stays."""
        settings, direction = self._settings, self._settings.direction
        trained = Trained(self._run, settings.config, direction, self._tokenizers, self._model, device)
        made_from = {
            **described_run(self._run, self._model, direction),
            **described_files(*file_pair(settings.splits.valid, direction)),
            # Those of this step are saved nowhere.
            "weights_sha256": None,
            "step": step,
            "lines": self._pairs[-1].line,
        }
        folder = self._run.path / _FOLDER
        sentences = forced_maps(trained, self._pairs, batch_tokens=_MOST_PIECES**2)
        write_maps(folder / f"step_{step:07}", sentences, described_sites(self._model), made_from)
        _thin(sorted(folder.glob("step_*")))


def write_film(run: RunDirectory) -> None:
    """Writes the page that plays the probes of all steps, if there are any."""
    path = run.path / _FOLDER
    try:
        # A training that was stopped while it wrote has left one without a manifest.
        folders = [MapFolder(folder) for folder in map_folders(path) if folder != path]
        if folders:
            write_viewer(path / "viewer.html", viewed_runs(folders))
    except (OSError, ValueError) as error:
        # A training that has ended is not lost for a picture of it.
        logger.warning("No film of the probes in %s: %s", path, error)


def _thin(steps: list[Path]) -> None:
    """Deletes every second of too many folders, but not the first and not the last."""
    if len(steps) > _MOST_STEPS:
        for folder in steps[1:-1:2]:
            shutil.rmtree(folder)
