"""When training ends: after an optimizer step and, unless a signal stops it, after a validation."""

import logging
import math
import signal
import threading
from pathlib import Path
from types import FrameType
from typing import Any

from lightning import LightningModule, Trainer
from lightning.pytorch.callbacks import Callback, Checkpoint, EarlyStopping
from torch.optim.lr_scheduler import ReduceLROnPlateau

from nmt.errors import TERMINATED
from nmt.signals import (
    INTERRUPTED,
    EndedBySignal,
    EndingBlockedCalls,
    discard_output_to_lost_terminal,
    on_stop_signals,
)

logger = logging.getLogger(__name__)


def measured(trainer: Trainer, monitor: str) -> bool:
    """Whether the last validation measured the metric (BLEU is skipped if it takes too long)."""
    return monitor in trainer.callback_metrics and not math.isnan(trainer.callback_metrics[monitor].item())


class LastValidation(Callback):
    """Validates after the last step, even if its number is not a multiple of validation.every."""

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        if trainer.global_step >= trainer.max_steps > 0:
            trainer.should_stop = True


class StopEarly(EarlyStopping):
    """Stops after `patience` validations in which the monitored metric was measured and did not improve."""

    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        # Lightning restores the counter of a resumed run, but not the decision to stop.
        trainer.should_stop = trainer.should_stop or self.wait_count >= self.patience

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if measured(trainer, self.monitor):
            super().on_validation_end(trainer, pl_module)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().load_state_dict(state_dict | {"patience": self.patience})


class FollowPlateau(Callback):
    """Passes the monitored metric to a plateau schedule before the checkpoint of that validation is written."""

    def __init__(self, monitor: str, sign: int) -> None:
        self._monitor, self._sign = monitor, sign

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        schedule = trainer.lr_scheduler_configs[0].scheduler
        if isinstance(schedule, ReduceLROnPlateau) and measured(trainer, self._monitor):
            schedule.step(self._sign * trainer.callback_metrics[self._monitor].item())


class Connecting(Callback):
    """A context in which signals end a process that waits for the others of a distributed run.

    torch may wait for half an hour, and no handler of a signal is called meanwhile. Lightning calls `setup` as soon as
    the processes are connected; from then on, signals are left to StopOnSignal.
    """

    def __init__(self, processes: int, machines: int) -> None:
        self._processes, self._machines = processes, machines
        self._watch: EndingBlockedCalls | None = None

    def __enter__(self) -> None:
        if self._processes > 1 and threading.current_thread() is threading.main_thread():
            self._watch = EndingBlockedCalls(TERMINATED)
        if self._machines > 1:
            logger.info("Waiting for all %d processes on %d machines", self._processes, self._machines)

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        self._end()

    def __exit__(self, *error: object) -> None:
        self._end()

    def _end(self) -> None:
        if self._watch is not None:
            self._watch.close()


class Stopped(SystemExit):
    """Training was stopped by a signal, after a checkpoint of its last step was written."""


class StopOnSignal(Checkpoint):
    """On SIGINT or one of STOP_SIGNALS, finishes the step, writes the last checkpoint and raises Stopped.

    A second signal stops at once. The class derives from Checkpoint so that Lightning calls it last: a step with a
    validation has written its checkpoint by then.
    """

    def __init__(self, last: Path) -> None:
        self._last = last
        self._signal: int | None = None

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        # Lightning has set its own handlers by now, and restores the earlier ones at the end. Python handles signals
        # only in its main thread.
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, self._ask)
            on_stop_signals(self._ask)

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        # If a validation follows, it writes the checkpoint.
        validates = trainer.should_stop or trainer.global_step % (trainer.val_check_batch or 1) == 0
        if not validates and self._asked(trainer):
            trainer.save_checkpoint(self._last)
            raise Stopped(self._code)

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if self._asked(trainer):
            raise Stopped(self._code)

    @property
    def _code(self) -> int:
        return INTERRUPTED if self._signal == signal.SIGINT else TERMINATED

    def _asked(self, trainer: Trainer) -> bool:
        """Whether any process got a signal, so that all stop at the same step."""
        mine = self._signal is not None
        return mine if trainer.world_size == 1 else trainer.strategy.reduce_boolean_decision(mine, all=False)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        if self._signal is not None:
            raise EndedBySignal(self._code, number)
        self._signal = number
        name = signal.Signals(number).name
        if name == "SIGHUP":
            discard_output_to_lost_terminal()
        logger.warning(
            "%s: finishing this step, with its validation if one is due, and then writing a checkpoint. A second "
            "signal stops training at once, without a checkpoint.",
            name,
        )
