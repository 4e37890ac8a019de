"""Logs the training speed; without a progress bar, also prints the speed and the time left on standard error."""

import logging
import math
import time
from datetime import timedelta
from typing import Any

from lightning import LightningModule, Trainer
from lightning.pytorch.callbacks import Callback

from nmt.training.limits import NO_LIMIT
from nmt.training.task import TrainingTask

logger = logging.getLogger(__name__)


class Progress(Callback):
    """Logs `tokens_per_second`: the tokens predicted, including EOS, per second of training, excluding validation.

    With `lines`, it also writes a line with the speed and the time left every `every` steps; `counted` is what that
    line calls the tokens. `seconds` is the wall time of the run, and `training_seconds` is the part of it that was not
    spent on validation; both include the time before a resume.
    """

    def __init__(
        self,
        task: TrainingTask,
        every: int,
        lines: bool,
        max_seconds: float | None = None,
        counted: str = "target tokens",
    ) -> None:
        self._task = task
        self.seconds = self.training_seconds = 0.0
        self._counted = counted
        self._every, self._lines, self._max_seconds = every, lines, max_seconds
        self._mark = self._window = 0.0
        self._tokens = self._step = 0
        self._start_step, self._start_seconds = 0, 0.0

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._mark = time.monotonic()
        self._start_step, self._start_seconds = trainer.global_step, self.seconds
        self._restart_window(trainer)

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        if trainer.global_step - self._step >= self._every:
            self._elapse(training=True)
            self._report(trainer)
            self._restart_window(trainer)

    def on_validation_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._elapse(training=True)

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._elapse(training=False)
        metrics = {name: value.item() for name, value in trainer.callback_metrics.items() if name.startswith("valid")}
        if math.isnan(metrics.get("valid_bleu", 0.0)):  # it was skipped, see ValidationBleu
            del metrics["valid_bleu"]
        if self._lines:
            logger.info("step %d  %s", trainer.global_step, "  ".join(f"{k} {v:.3f}" for k, v in metrics.items()))

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._elapse(training=True)

    def state_dict(self) -> dict[str, Any]:
        return {"seconds": self.seconds, "training_seconds": self.training_seconds}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.seconds, self.training_seconds = state_dict["seconds"], state_dict["training_seconds"]

    def _elapse(self, training: bool) -> None:
        """Adds the time since the last mark to `seconds` and, if it was spent on training, to `training_seconds`."""
        now = time.monotonic()
        self.seconds += now - self._mark
        self.training_seconds += (now - self._mark) * training
        self._mark = now

    def _restart_window(self, trainer: Trainer) -> None:
        self._window, self._step = self.training_seconds, trainer.global_step
        self._tokens = self._task.target_tokens

    def _report(self, trainer: Trainer) -> None:
        seconds = self.training_seconds - self._window
        speed = (self._task.target_tokens - self._tokens) / seconds
        self._task.log("tokens_per_second", speed, prog_bar=True)
        if self._lines:
            logger.info(
                "step %d/%s  %s  lr %.2e  %s %s/s  %s left",
                trainer.global_step,
                trainer.max_steps if 0 < trainer.max_steps < NO_LIMIT else "-",
                "  ".join(f"{k} {v.item():.3f}" for k, v in trainer.callback_metrics.items() if k.startswith("train")),
                trainer.optimizers[0].param_groups[0]["lr"],
                f"{speed:,.0f}",
                self._counted,
                self._left(trainer),
            )

    def _left(self, trainer: Trainer) -> str:
        """Hours, minutes and seconds until max_steps or max_time, whichever comes first; validations are included.

        Only the speed since the last resume counts: the run may have begun on a slower or busier machine.
        """
        limits = []
        if 0 < trainer.max_steps < NO_LIMIT:
            seconds, steps = self.seconds - self._start_seconds, trainer.global_step - self._start_step
            limits.append((trainer.max_steps - trainer.global_step) * seconds / steps)
        if self._max_seconds is not None:
            limits.append(max(0.0, self._max_seconds - self.seconds))
        return str(timedelta(seconds=round(min(limits)))) if limits else "unknown time"
