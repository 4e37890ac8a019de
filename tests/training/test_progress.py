"""Speed counts training alone, and the time left all of it."""

import io
import logging
from unittest.mock import Mock

import pytest
import torch
from lightning import LightningModule, Trainer
from rich.console import Console

from nmt.cli.log import StandardErrorHandler
from nmt.training import progress
from nmt.training.limits import NO_LIMIT
from nmt.training.progress import Figures, Progress, TrainingBar, bar_text
from nmt.training.task import TranslationTask


class Run:
    """Steps and validations that take what the test says, on a clock of its own."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, max_steps: int, max_seconds: float | None = None) -> None:
        self.now = 100.0
        monkeypatch.setattr(progress, "time", Mock(monotonic=lambda: self.now))
        self.task = Mock(spec=TranslationTask, target_tokens=0)
        self.callback = Progress(self.task, every=2, lines=True, max_seconds=max_seconds)
        self.trainer = Mock(spec=Trainer, global_step=0, max_steps=max_steps)
        self.trainer.callback_metrics = {"train_loss": torch.tensor(1.0), "valid_loss": torch.tensor(2.0)}
        self.trainer.optimizers = [Mock(param_groups=[{"lr": 0.5}])]
        self.module = Mock(spec=LightningModule)
        self.callback.on_train_start(self.trainer, self.module)

    def step(self, seconds: float, tokens: int) -> None:
        self.now += seconds
        self.task.target_tokens += tokens
        self.trainer.global_step += 1
        self.callback.on_train_batch_end(self.trainer, self.module, None, None, 0)

    def validate(self, seconds: float) -> None:
        self.callback.on_validation_start(self.trainer, self.module)
        self.now += seconds
        self.callback.on_validation_end(self.trainer, self.module)


def test_validation_takes_no_part_in_speed_but_in_the_time_left(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    run = Run(monkeypatch, max_steps=8)
    with caplog.at_level(logging.INFO):
        run.step(2.0, 300)
        run.validate(6.0)
        run.step(4.0, 600)
    assert run.task.log.call_args.args == ("tokens_per_second", 900 / 6)
    # 12 seconds for two of eight steps.
    assert "step 1  valid_loss 2.000" in caplog.text
    assert "step 2/8  train_loss 1.000  lr 5.00e-01  150 target tokens/s  0:00:36 left" in caplog.text
    assert (run.callback.seconds, run.callback.training_seconds) == (12.0, 6.0)


def test_the_nearer_limit_is_the_time_left(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    run = Run(monkeypatch, max_steps=NO_LIMIT, max_seconds=10.0)
    with caplog.at_level(logging.INFO):
        run.step(2.0, 300)
        run.step(2.0, 300)
    assert "step 2/-  train_loss" in caplog.text
    assert "150 target tokens/s  0:00:06 left" in caplog.text


def test_seconds_go_on_in_a_resumed_run(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = Run(monkeypatch, max_steps=8), Run(monkeypatch, max_steps=8)
    first.callback.seconds, first.callback.training_seconds = 30.0, 20.0
    second.callback.load_state_dict(first.callback.state_dict())
    second.step(1.0, 10)
    second.step(1.0, 10)
    assert (second.callback.seconds, second.callback.training_seconds) == (32.0, 22.0)


def test_the_time_left_of_a_resumed_run_counts_its_own_speed(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    run = Run(monkeypatch, max_steps=12)
    run.callback.load_state_dict({"seconds": 1000.0, "training_seconds": 1000.0})
    run.trainer.global_step = 4
    run.callback.on_train_start(run.trainer, run.module)
    with caplog.at_level(logging.INFO):
        run.step(3.0, 300)
        run.step(3.0, 300)
    assert "step 6/12  train_loss" in caplog.text
    assert "0:00:18 left" in caplog.text  # six more steps of three seconds


FIGURES = Figures(
    30, 60, {"train_loss": 5.4214, "train_accuracy": 0.25}, lr=4.65e-4, speed=5258.4, share=0.5, seconds_left=46.2
)


def test_the_text_beside_the_bar_fits_and_keeps_the_loss_and_the_time_left() -> None:
    assert bar_text(FIGURES, "predicted pieces", 80) == (
        "loss 5.421  accuracy 0.250  lr 4.65e-04  5,258 pieces/s  0:00:46 left"
    )
    for width in range(24, 90):
        text = bar_text(FIGURES, "predicted pieces", width)
        assert len(text) <= width
        assert text.startswith("loss 5.421")
        assert text.endswith("0:00:46 left")
    assert bar_text(FIGURES, "target tokens", 40, doing="validating").endswith("  validating")


@pytest.mark.parametrize(
    ("max_steps", "max_seconds", "step", "left"),
    [
        (4, None, "step 2/4", "0:00:06 left"),
        (NO_LIMIT, 60.0, "step 2 ", "0:00:54 left"),
        (400, 9.0, "step 2/400", "0:00:03 left"),
        (NO_LIMIT, None, "step 2 ", "tokens/s "),
    ],
)
def test_the_bar_has_the_step_the_loss_the_rate_and_the_time_left(
    monkeypatch: pytest.MonkeyPatch, max_steps: int, max_seconds: float | None, step: str, left: str
) -> None:
    run, screen = Run(monkeypatch, max_steps, max_seconds), io.StringIO()
    bar = TrainingBar(run.callback, Console(file=screen, force_terminal=True, width=80, color_system=None))
    bar.on_train_start(run.trainer, run.module)
    for _ in range(2):
        run.step(3.0, 300)
        bar.on_train_batch_end(run.trainer, run.module, None, None, 0)
    line = screen.getvalue().split("\x1b[2K")[-1]
    assert line.startswith(step)
    assert "loss 1.000  lr 5.00e-01  100 tokens/s" in line
    assert left in f"{line} "
    assert len(line.rstrip("\r\n")) <= 80
    bar.on_validation_start(run.trainer, run.module)
    assert "validating" in screen.getvalue().split("\x1b[2K")[-1]
    bar.on_exception(run.trainer, run.module, KeyboardInterrupt())
    assert screen.getvalue().endswith("\x1b[?25h")  # the cursor is back


def test_messages_appear_above_the_bar(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    run, screen = Run(monkeypatch, max_steps=8), io.StringIO()
    bar = TrainingBar(run.callback, Console(file=screen, force_terminal=True, width=80, color_system=None))
    handler = StandardErrorHandler()
    bar.on_train_start(run.trainer, run.module)
    handler.emit(logging.makeLogRecord({"msg": "a message"}))
    bar.teardown(run.trainer, run.module, "fit")
    handler.emit(logging.makeLogRecord({"msg": "a later message"}))
    assert "a message\n" in screen.getvalue()
    assert capsys.readouterr().err == "a later message\n"
