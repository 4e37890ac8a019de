"""When training ends, and that it ends with a validation: each callback sets `trainer.should_stop` at whole steps."""

import math
from typing import Any

from lightning import LightningModule, Trainer
from lightning.pytorch.callbacks import Callback, EarlyStopping, Timer
from torch.optim.lr_scheduler import ReduceLROnPlateau


def measured(trainer: Trainer, monitor: str) -> bool:
    """Whether the validation that has just run gave the monitored metric (BLEU is left out when it takes too long)."""
    return monitor in trainer.callback_metrics and not math.isnan(trainer.callback_metrics[monitor].item())


def step_is_whole(trainer: Trainer, batch_idx: int) -> bool:
    """Whether the batch ends an optimiser's step; a checkpoint between would lose the gradients gathered so far."""
    return (batch_idx + 1) % trainer.accumulate_grad_batches == 0


class TimeLimit(Timer):
    """Lightning's timer (trainer.max_time, resumed runs included) that lets the running step end."""

    def on_train_batch_end(self, trainer: Trainer, *args: Any, **kwargs: Any) -> None:
        if step_is_whole(trainer, args[-1]):
            super().on_train_batch_end(trainer, *args, **kwargs)


class LastValidation(Callback):
    """Validates after the last step, also where it is no multiple of validation.every."""

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        if trainer.global_step >= trainer.max_steps > 0:
            trainer.should_stop = True


class StopEarly(EarlyStopping):
    """Stops after `patience` validations in which the monitored metric was measured and did not improve."""

    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        # Lightning restores the counter of a resumed run but not the decision.
        trainer.should_stop = trainer.should_stop or self.wait_count >= self.patience

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if measured(trainer, self.monitor):
            super().on_validation_end(trainer, pl_module)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().load_state_dict(state_dict | {"patience": self.patience})


class FollowPlateau(Callback):
    """Shows a plateau schedule the monitored metric, before the checkpoint of that validation is written."""

    def __init__(self, monitor: str, sign: int) -> None:
        self._monitor, self._sign = monitor, sign

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        schedule = trainer.lr_scheduler_configs[0].scheduler
        if isinstance(schedule, ReduceLROnPlateau) and measured(trainer, self._monitor):
            schedule.step(self._sign * trainer.callback_metrics[self._monitor].item())
