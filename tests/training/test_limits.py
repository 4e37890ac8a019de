"""How many steps a training has, and what is warned of before it begins."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from nmt.config.job import Job
from nmt.data.dataset import TrainingData
from nmt.data.plan import Mixing, plan, plan_epoch
from nmt.training.limits import steps_of_training
from nmt.training.machine import choose_machine


@pytest.mark.parametrize("processes", [1, 2])
def test_an_epoch_of_several_processes_has_as_many_steps_as_its_plan(job: Callable[..., Job], processes: int) -> None:
    changes = {"trainer": "ddp", "trainer__devices": processes} if processes > 1 else {}
    settings = job("train", trainer__max_epochs=3, trainer__max_steps="null", **changes).settings
    assert choose_machine(settings.trainer).processes == processes
    rows = TrainingData.__new__(TrainingData)
    rows.lengths, rows.parts = np.full((101, 2), 7), [101]
    steps = [len(plan(1, epoch, rows.lengths, 101, 1, processes)) for epoch in range(3)]
    assert steps_of_training(settings, rows.lengths, Mixing(), processes) == sum(steps)


def test_epochs_beyond_the_last_step_are_not_planned(job: Callable[..., Job], monkeypatch: pytest.MonkeyPatch) -> None:
    planned = []

    def plan_one(seed: int, epoch: int, *rest: Any) -> Any:
        planned.append(epoch)
        return plan_epoch(seed, epoch, *rest)

    monkeypatch.setattr("nmt.training.limits.plan_epoch", plan_one)
    rows = TrainingData.__new__(TrainingData)
    rows.lengths, rows.parts = np.full((101, 2), 7), [101]
    first = len(plan(1, 0, rows.lengths, 101, 1, 1))
    settings = job("train", trainer__max_epochs=1000, trainer__max_steps=first + 1).settings
    assert steps_of_training(settings, rows.lengths, Mixing(), 1) == first + 1
    assert planned == [0, 1]


def test_a_learning_rate_that_will_not_fall_to_the_end_is_told(
    job: Callable[..., Job], caplog: pytest.LogCaptureFixture
) -> None:
    rows = TrainingData.__new__(TrainingData)
    rows.lengths, rows.parts = np.full((101, 2), 7), [101]
    settings = job("train", trainer__max_epochs=1, trainer__max_steps=50, schedule="cosine").settings
    steps = steps_of_training(settings, rows.lengths, Mixing(), 1)
    assert f"Training ends at step {steps}, but the learning rate decays over 50 steps" in caplog.text
    assert f"to let it decay fully, start a new run with schedule.steps={steps}." in caplog.text
    caplog.clear()
    for own in ({"trainer__max_steps": steps, "schedule": "cosine"}, {"trainer__max_steps": 50}):
        steps_of_training(job("train", trainer__max_epochs=1, **own).settings, rows.lengths, Mixing(), 1)
    assert "learning rate" not in caplog.text
