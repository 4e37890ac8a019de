"""What a configuration says of its training before it begins: its length, and what is warned of."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from jobs import run_settings

from nmt.config.job import Job
from nmt.data.dataset import TrainingData
from nmt.data.plan import Mixing, plan, plan_epoch
from nmt.errors import Mistake
from nmt.training.buildable import check_buildable
from nmt.training.machine import choose_machine, faster_precision
from nmt.training.prepared import changed_command, steps_of_training


@pytest.mark.parametrize("processes", [1, 2])
def test_an_epoch_of_several_processes_has_as_many_steps_as_its_plan(job: Callable[..., Job], processes: int) -> None:
    changes = {"trainer": "ddp", "trainer__devices": processes} if processes > 1 else {}
    settings = job("train", trainer__max_epochs=3, trainer__max_steps="null", **changes).settings
    assert choose_machine(settings.trainer).processes == processes
    rows = TrainingData.__new__(TrainingData)
    rows.lengths, rows.parts = np.full((101, 2), 7), [101]
    steps = [len(plan(1, epoch, rows.lengths, 101, 1, processes)) for epoch in range(3)]
    assert steps_of_training(settings, rows.lengths, Mixing(), processes) == sum(steps)


def test_devices_that_cannot_exist_are_refused(job: Callable[..., Job]) -> None:
    with pytest.raises(Mistake, match=r"trainer\.devices is 99999, but this machine has \d+ cores and \d+ GPUs"):
        choose_machine(job("train", trainer="ddp", trainer__devices=99999).settings.trainer)


@pytest.mark.parametrize("devices", ["0", "'0'", "[]"])
def test_training_needs_a_device(job: Callable[..., Job], devices: str) -> None:
    with pytest.raises(
        Mistake, match=r"trainer\.devices is (0|\[\]); set it to the number of devices to use, at least 1"
    ):
        choose_machine(job("train", trainer__devices=devices).settings.trainer)


def test_more_processes_than_cores_are_reported(
    job: Callable[..., Job], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1}, raising=False)
    choose_machine(job("train", trainer="ddp", trainer__devices=2).settings.trainer)
    assert "with one process per device" not in caplog.text
    choose_machine(job("train", trainer="ddp", trainer__devices=3).settings.trainer)
    assert "trainer.devices is 3, with one process per device, but there are only 2 cores: use at most 2" in caplog.text


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"objective": "r_drop"}, True),
        ({"objective": "simcut", "objective__cut": 0.0}, True),
        ({"objective": "simcut"}, False),
        ({"objective": "r_drop", "model__dropout_at__ffn": 0.1}, False),
        ({}, False),
    ],
)
def test_two_passes_that_would_be_the_same_are_told(
    job: Callable[..., Job], changes: dict[str, Any], told: bool, caplog: pytest.LogCaptureFixture
) -> None:
    check_buildable(job("train", model__dropout=0.0, **changes).settings)
    assert ("compares two passes that differ only in dropout, but this model has no dropout" in caplog.text) == told


def test_a_choice_for_a_site_that_the_model_lacks_is_refused() -> None:
    with pytest.raises(
        Mistake,
        match=r"^scorer@encoder_self has no effect, because this model has no attention at encoder_self; leave it out, "
        r"or add encoder@model=lstmn\.$",
    ):
        check_buildable(run_settings("model=luong", "scorer@encoder_self=dot"))
    with pytest.raises(Mistake, match=r"^normalizer@decoder_self has no effect, .* decoder@model=lstmn\.$"):
        check_buildable(run_settings("model=luong", "normalizer@decoder_self=sparsemax"))
    check_buildable(run_settings("model=luong", "encoder@model=lstmn", "scorer@encoder_self=dot"))
    check_buildable(run_settings("model=transformer", "scorer@encoder_self=dot"))


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


@pytest.mark.parametrize(
    ("able", "precision", "device", "expected"),
    [
        ({"avx512_bf16": True}, "32-true", "cpu", "bf16-mixed"),
        ({"amx_bf16": True, "avx512_bf16": False}, 32, "cpu", "bf16-mixed"),
        ({"amx_bf16": False, "avx512_bf16": False}, "32-true", "cpu", None),
        ({}, "32-true", "cpu", None),
        ({"amx_bf16": True}, "bf16-mixed", "cpu", None),
        ({"amx_bf16": True}, "32-true", "cuda", None),
    ],
)
def test_a_cpu_that_is_fast_in_bfloat16_is_named(job, able, precision, device, expected, monkeypatch) -> None:
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: able)
    assert faster_precision(job("train", trainer__precision=precision).settings.trainer, device) == expected


def test_epochs_beyond_the_last_step_are_not_planned(job: Callable[..., Job], monkeypatch: pytest.MonkeyPatch) -> None:
    planned = []

    def plan_one(seed: int, epoch: int, *rest: Any) -> Any:
        planned.append(epoch)
        return plan_epoch(seed, epoch, *rest)

    monkeypatch.setattr("nmt.training.prepared.plan_epoch", plan_one)
    rows = TrainingData.__new__(TrainingData)
    rows.lengths, rows.parts = np.full((101, 2), 7), [101]
    first = len(plan(1, 0, rows.lengths, 101, 1, 1))
    settings = job("train", trainer__max_epochs=1000, trainer__max_steps=first + 1).settings
    assert steps_of_training(settings, rows.lengths, Mixing(), 1) == first + 1
    assert planned == [0, 1]


def test_the_recorded_command_does_not_resume() -> None:
    """It gives the same result at once, and may be that of a resumed run whose record was lost."""
    before, after = ({"trainer": {"max_steps": steps}} for steps in (4, 6))
    command = "python -m nmt.train resume=true seed=2 trainer.max_steps=4"
    assert changed_command(command, before, after) == "python -m nmt.train seed=2 trainer.max_steps=6"
    assert changed_command(command, before, before) == "python -m nmt.train seed=2 trainer.max_steps=4"
