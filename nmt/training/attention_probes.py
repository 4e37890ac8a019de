"""Attention probes: maps of the same sentences at each validation."""

import shutil
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from lightning import LightningModule, Trainer
from lightning.pytorch.callbacks import Callback

from nmt.data.corpus import file_pair
from nmt.data.example import Example
from nmt.insight.forced_maps import IdPair, forced_maps
from nmt.insight.provenance import described_files, described_run, described_sites
from nmt.maps.map_files import write_maps
from nmt.runs.load import LoadedRun
from nmt.training.tensorboard import show_maps

# Maps of longer sentences are not readable.
_MOST_PIECES = 60
# A page with more steps is too large to open.
_MOST_STEPS = 100
_FOLDER = "probes"


def probe_pairs(validation: Sequence[Example], number: int) -> list[IdPair]:
    """The first `number` validation pairs that are short enough to display."""
    short = (pair for pair in validation if all(0 < len(side) < _MOST_PIECES for side in (pair.source, pair.target)))
    return [IdPair(pair.number + 1, 1, pair.source, pair.target) for pair in islice(short, number)]


class AttentionProbes(Callback):
    """Writes the maps of the probe sentences at the end of each validation, using the weights being validated."""

    def __init__(self, run: LoadedRun, pairs: list[IdPair]) -> None:
        self._run, self._pairs = run, pairs
        # Described here, because the files may have changed or be gone by the time of a validation.
        self._files = described_files(*file_pair(run.settings.data.valid, run.direction)) if pairs else {}

    def on_validation_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if not trainer.is_global_zero or not self._pairs:
            return
        run, step = self._run._replace(device=pl_module.device), trainer.global_step
        made_from = {
            **described_run(run.directory, run.model, run.direction),
            **self._files,
            # The weights of this step are not saved.
            "weights_sha256": None,
            "step": step,
            "lines": self._pairs[-1].line,
        }
        folder = run.directory.path / _FOLDER
        sentences = list(forced_maps(run, self._pairs, batch_tokens=_MOST_PIECES**2))
        write_maps(folder / f"step_{step:07}", sentences, described_sites(run.model), made_from)
        thin_out(sorted(folder.glob("step_*")))
        show_maps(trainer, sentences)


def thin_out(steps: list[Path]) -> None:
    """If there are too many folders, deletes every second one, but never the first or the last."""
    if len(steps) > _MOST_STEPS:
        for folder in steps[1:-1:2]:
            shutil.rmtree(folder)
