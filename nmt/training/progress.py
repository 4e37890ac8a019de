"""The progress of training: the speed in the logs and, on standard error, a bar or, if it is no terminal, lines."""

import logging
import math
import time
from datetime import timedelta
from typing import Any, NamedTuple

from lightning import LightningModule, Trainer
from lightning.pytorch.callbacks import Callback
from rich.console import Console
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as RichProgress
from rich.table import Column

from nmt.training.limits import NO_LIMIT
from nmt.training.task import TrainingTask

logger = logging.getLogger(__name__)

_SECONDS_BETWEEN_DRAWINGS = 0.2
_NARROWEST_BAR = 10
"""Columns of the bar and of the spaces beside it."""


class Figures(NamedTuple):
    """How far training is."""

    step: int
    steps: int | None
    """None if neither steps nor epochs are limited."""
    metrics: dict[str, float]
    """What the latest step logged, such as train_loss."""
    lr: float
    speed: float
    """Tokens per second."""
    share: float | None
    """How much of the nearest limit, of steps or of time, is used; None if there is no limit."""
    seconds_left: float | None

    @property
    def left(self) -> str:
        """Hours, minutes and seconds."""
        return "unknown time" if self.seconds_left is None else str(timedelta(seconds=round(self.seconds_left)))


class Progress(Callback):
    """Logs `tokens_per_second`: the tokens predicted, including EOS, per second of training, excluding validation.

    With `lines`, it also writes a line with the speed and the time left every `every` steps; `counted` is what that
    line calls the tokens. A line about each validation is written in any case. `seconds` is the wall time of the run,
    and `training_seconds` is the part of it that was not spent on validation; both include the time before a resume.
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
        self._mark = self._window = self._speed = 0.0
        self._tokens = self._step = 0
        self._start_step, self._start_seconds = 0, 0.0

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._mark = time.monotonic()
        self._start_step, self._start_seconds = trainer.global_step, self.seconds
        self._restart_window(trainer)

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        self._elapse(training=True)
        if trainer.global_step - self._step >= self._every:
            self._speed = self._window_speed()
            self._task.log("tokens_per_second", self._speed)
            if self._lines:
                self._write_line(self.figures(trainer))
            self._restart_window(trainer)

    def on_validation_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._elapse(training=True)

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._elapse(training=False)
        metrics = {name: value.item() for name, value in trainer.callback_metrics.items() if name.startswith("valid")}
        if math.isnan(metrics.get("valid_bleu", 0.0)):  # it was skipped, see ValidationBleu
            del metrics["valid_bleu"]
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

    def _window_speed(self) -> float:
        seconds = self.training_seconds - self._window
        return (self._task.target_tokens - self._tokens) / seconds if seconds else 0.0

    def _write_line(self, figures: Figures) -> None:
        logger.info(
            "step %d/%s  %s  lr %.2e  %s %s/s  %s left",
            figures.step,
            figures.steps or "-",
            "  ".join(f"{name} {value:.3f}" for name, value in figures.metrics.items()),
            figures.lr,
            f"{figures.speed:,.0f}",
            self._counted,
            figures.left,
        )

    def figures(self, trainer: Trainer) -> Figures:
        """How far training is, after a step.

        The time left is that until max_steps or max_time, whichever comes first; validations are included. Only the
        speed since the last resume counts: the run may have begun on a slower or busier machine.
        """
        steps = trainer.max_steps if 0 < trainer.max_steps < NO_LIMIT else None
        shares, limits = [], []
        if steps is not None:
            seconds, taken = self.seconds - self._start_seconds, trainer.global_step - self._start_step
            shares.append(trainer.global_step / steps)
            limits.append((steps - trainer.global_step) * seconds / max(1, taken))
        if self._max_seconds is not None:
            shares.append(min(1.0, self.seconds / self._max_seconds))
            limits.append(max(0.0, self._max_seconds - self.seconds))
        return Figures(
            trainer.global_step,
            steps,
            metrics={k: v.item() for k, v in trainer.callback_metrics.items() if k.startswith("train")},
            lr=trainer.optimizers[0].param_groups[0]["lr"],
            speed=self._speed or self._window_speed(),
            share=max(shares, default=None),
            seconds_left=min(limits, default=None),
        )


class TrainingBar(Callback):
    """Draws a bar with the step, the loss, the learning rate and the time left on a terminal.

    Messages that are logged meanwhile appear above it. It asks `progress`, a callback that comes before it.
    """

    def __init__(self, progress: Progress, console: Console, counted: str = "target tokens") -> None:
        self._progress, self._console, self._counted = progress, console, counted
        # No thread redraws the bar, so it costs nothing between two steps.
        self._bar = RichProgress(
            TextColumn("{task.description}"),
            # Colors that terminals with 16 colors have too; there, rich's own green becomes gray.
            BarColumn(bar_width=None, style="bright_black", complete_style="cyan", finished_style="green"),
            TextColumn("{task.fields[figures]}", table_column=Column(no_wrap=True)),
            console=console,
            auto_refresh=False,
            expand=True,
        )
        self._bar_id = self._bar.add_task("", total=None, figures="")
        self._drawn = -math.inf

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._bar.start()
        self._draw(trainer, "")

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        last = trainer.global_step >= trainer.max_steps > 0
        if last or time.monotonic() - self._drawn >= _SECONDS_BETWEEN_DRAWINGS:
            self._draw(trainer, "")

    def on_validation_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._draw(trainer, "validating")

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._draw(trainer, "")

    def teardown(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        self._bar.stop()

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        self._bar.stop()

    def _draw(self, trainer: Trainer, doing: str) -> None:
        figures = self._progress.figures(trainer)
        step = f"step {figures.step}" + (f"/{figures.steps}" if figures.steps else "")
        self._bar.update(
            self._bar_id,
            description=step,
            total=None if figures.share is None else 1.0,
            completed=figures.share or 0.0,
            figures=bar_text(figures, self._counted, self._console.width - len(step) - _NARROWEST_BAR, doing),
        )
        self._bar.refresh()
        self._drawn = time.monotonic()


def bar_text(figures: Figures, counted: str, width: int, doing: str = "") -> str:
    """The figures beside the bar, in at most `width` columns: the least important ones are left out.

    `doing` replaces the time left.
    """
    parts = {name.removeprefix("train_"): value for name, value in figures.metrics.items()}
    shown = {name: f"{name} {value:.3f}" for name, value in parts.items()}
    shown["lr"] = f"lr {figures.lr:.2e}"
    if figures.speed:
        shown["speed"] = f"{figures.speed:,.0f} {counted.split()[-1]}/s"
    if doing or (figures.seconds_left is not None and figures.metrics):
        shown["left"] = doing or f"{figures.left} left"
    for name in ("speed", "lr", *(name for name in parts if name != "loss")):
        if len("  ".join(shown.values())) > width:
            shown.pop(name, None)
    return "  ".join(shown.values())
