"""What the model attends to in the same sentences at each validation, so that its learning can be watched."""

from collections.abc import Callable

import torch
from lightning import LightningModule, Trainer
from lightning.pytorch.callbacks import Callback


class AttentionProbes(Callback):
    """Calls write(step, device) at the end of each validation, of one process, on the weights that are validated."""

    def __init__(self, write: Callable[[int, torch.device], None]) -> None:
        self._write = write

    def on_validation_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if trainer.is_global_zero:
            self._write(trainer.global_step, pl_module.device)
