"""What a configuration says of its training before it begins: its length, and what is warned of."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from nmt.config.job import Job
from nmt.data.dataset import TrainingData
from nmt.data.plan import plan
from nmt.training.building import check_buildable, choose_machine, faster_precision, steps_of_training
from nmt.training.settings import Settings


@pytest.mark.parametrize("processes", [1, 2])
def test_an_epoch_of_several_processes_has_as_many_steps_as_its_plan(job: Callable[..., Job], processes: int) -> None:
    changes = {"trainer": "ddp", "trainer__devices": processes} if processes > 1 else {}
    settings = Settings(job("train", trainer__max_epochs=3, trainer__max_steps="null", **changes).config)
    assert choose_machine(settings.config).processes == processes
    rows = TrainingData.__new__(TrainingData)
    rows.lengths, rows.parts = np.full((101, 2), 7), [101]
    steps = [len(plan(1, epoch, rows.lengths, 101, 1, processes)) for epoch in range(3)]
    assert steps_of_training(settings, rows, processes) == sum(steps)


def test_more_processes_than_cores_are_told(
    job: Callable[..., Job], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1}, raising=False)
    choose_machine(job("train", trainer="ddp", trainer__devices=2).config)
    assert "a process each" not in caplog.text
    choose_machine(job("train", trainer="ddp", trainer__devices=3).config)
    assert "trainer.devices is 3, a process each, but there are 2 cores: give 2 at most" in caplog.text


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
    check_buildable(Settings(job("train", model__dropout=0.0, **changes).config))
    assert ("compares two passes that differ by dropout alone, and this model has none" in caplog.text) == told


def test_a_learning_rate_that_will_not_fall_to_the_end_is_told(
    job: Callable[..., Job], caplog: pytest.LogCaptureFixture
) -> None:
    rows = TrainingData.__new__(TrainingData)
    rows.lengths, rows.parts = np.full((101, 2), 7), [101]
    settings = Settings(job("train", trainer__max_epochs=1, trainer__max_steps=50, schedule="cosine").config)
    steps = steps_of_training(settings, rows, 1)
    assert f"ends at step {steps} of the 50 along which the learning rate falls; in a new one with" in caplog.text
    assert f"schedule.steps={steps} it falls to the end" in caplog.text
    caplog.clear()
    for own in ({"trainer__max_steps": steps, "schedule": "cosine"}, {"trainer__max_steps": 50}):
        steps_of_training(Settings(job("train", trainer__max_epochs=1, **own).config), rows, 1)
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
def test_a_cpu_that_is_fast_in_bfloat16_is_named(able, precision, device, expected, monkeypatch) -> None:
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: able)
    assert faster_precision({"trainer": {"precision": precision}}, device) == expected
