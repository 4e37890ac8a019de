"""Where a training runs: devices that cannot be used are refused, and a faster precision is named."""

from collections.abc import Callable

import pytest
import torch

from nmt.config.job import Job
from nmt.errors import Mistake
from nmt.training.machine import choose_machine, faster_precision


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
