"""BLEU in validation keeps to its share of the time, and a collapsed model is reported."""

import logging
import math
from collections.abc import Sequence
from unittest.mock import Mock

import pytest
import torch
from lightning import LightningModule, Trainer

from nmt.decoding.translator import Translator
from nmt.training import validation
from nmt.training.validation import ValidationBleu


class Clock:
    """time.monotonic() that the test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


class Scripted(Translator):
    """A translator that takes a fixed time and says the same to everything."""

    def __init__(self, clock: Clock, seconds: float, outputs: list[str]) -> None:
        self.clock, self.seconds, self.outputs = clock, seconds, outputs

    def translate(self, lines: Sequence[str], *, documents: object = None) -> list[str]:
        self.clock.now += self.seconds
        return self.outputs


class Validated:
    """Runs validations and keeps what is logged."""

    def __init__(self, clock: Clock, outputs: list[str], share: float, seconds: float = 2.0) -> None:
        self.clock = clock
        self.logged: list[float] = []
        self.callback = ValidationBleu(Scripted(clock, seconds, outputs), outputs, outputs, lambda h, r: 7.0, share)
        self.trainer = Mock(spec=Trainer, should_stop=False, is_global_zero=True, global_step=3, loggers=[])
        self.trainer.strategy.broadcast = lambda value: value
        self.task = Mock(spec=LightningModule, device=torch.device("cpu"))
        self.task.log = lambda name, value, **_: self.logged.append(value)
        self.callback.on_fit_start(self.trainer, self.task)

    def after(self, seconds: float) -> float:
        self.clock.now += seconds
        self.callback.on_validation_epoch_end(self.trainer, self.task)
        return self.logged[-1]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    fake = Clock()
    monkeypatch.setattr(validation, "time", fake)
    return fake


def test_a_validation_that_would_exceed_the_share_is_left_out(clock: Clock) -> None:
    run = Validated(clock, ["a"], share=0.1)
    assert run.after(5) == 7.0
    assert all(math.isnan(run.after(seconds)) for seconds in (11, 1))  # 2 + 2 seconds: over a tenth of 18 and of 19
    assert run.after(21) == 7.0  # 4 seconds of 40


def test_a_resumed_run_counts_the_time_before(clock: Clock) -> None:
    run = Validated(clock, ["a"], share=0.1)
    run.after(31)
    resumed = Validated(clock, ["a"], share=0.1)
    resumed.callback.load_state_dict(run.callback.state_dict())
    assert math.isnan(resumed.after(5))  # 2 + 2 seconds of 33 + 5
    assert resumed.after(3) == 7.0  # of 41


def test_the_last_validation_is_never_left_out(clock: Clock) -> None:
    run = Validated(clock, ["a"], share=0.1)
    run.after(5)
    run.trainer.should_stop = True
    assert run.after(1) == 7.0


def test_a_share_of_one_leaves_none_out(clock: Clock) -> None:
    run = Validated(clock, ["a"], share=1.0)
    assert [run.after(2) for _ in range(4)] == [7.0] * 4


def test_few_distinct_outputs_are_a_warning_from_the_second_time_on(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    run = Validated(clock, ["same"] * 19, share=1.0)
    run.after(1)
    assert "collapsed" not in caplog.text
    run.after(5)
    assert "19 sentences, distinct translations: 1" in caplog.text


def test_one_sentence_says_nothing_about_the_outputs(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    run = Validated(clock, ["same"], share=1.0)
    run.after(1), run.after(5)
    assert "collapsed" not in caplog.text


def test_distinct_outputs_are_no_warning(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    run = Validated(clock, [str(i) for i in range(19)], share=1.0)
    with caplog.at_level(logging.INFO):
        run.after(1), run.after(5)
    assert "collapsed" not in caplog.text
    assert caplog.text.count("hypothesis") == 6
