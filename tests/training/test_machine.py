"""Where a training runs: devices that cannot be used are refused, and a faster precision is named."""

import os
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from lightning.fabric.utilities.rank_zero import rank_zero_only

from nmt.config.job import Job
from nmt.errors import Mistake
from nmt.training.machine import choose_machine, faster_precision, quiet


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
    ("able", "precision", "device", "parameters", "expected"),
    [
        ({"avx512_bf16": True}, "32-true", "cpu", 7_600_000, "bf16-mixed"),
        ({"amx_bf16": True, "avx512_bf16": False}, 32, "cpu", 7_600_000, "bf16-mixed"),
        ({"amx_bf16": True}, "32-true", "cpu", 1_000_000, None),
        ({"amx_bf16": False, "avx512_bf16": False}, "32-true", "cpu", 7_600_000, None),
        ({}, "32-true", "cpu", 7_600_000, None),
        ({"amx_bf16": True}, "bf16-mixed", "cpu", 7_600_000, None),
        ({"amx_bf16": True}, "32-true", "cuda", 7_600_000, None),
    ],
)
def test_a_cpu_that_is_fast_in_bfloat16_is_named(
    job, able, precision, device, parameters, expected, monkeypatch
) -> None:
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: able)
    assert faster_precision(job("train", trainer__precision=precision).settings.trainer, device, parameters) == expected


SRUN = {"SLURM_JOB_ID": "5", "SLURM_JOB_NAME": "train", "SLURM_STEP_ID": "0", "SLURM_PROCID": "1", "SLURM_LOCALID": "0"}
TORCHRUN = {"TORCHELASTIC_RUN_ID": "7", "RANK": "1", "LOCAL_RANK": "0", "GROUP_RANK": "0"}


def slurm(tasks: int, per_node: int | None, nodes: int, **more: str) -> dict[str, str]:
    per = {} if per_node is None else {"SLURM_NTASKS_PER_NODE": str(per_node)}
    return {**SRUN, "SLURM_NTASKS": str(tasks), "SLURM_NNODES": str(nodes), "SLURM_NODEID": "0", **per, **more}


def torchrun(tasks: int, local: int) -> dict[str, str]:
    return {**TORCHRUN, "WORLD_SIZE": str(tasks), "LOCAL_WORLD_SIZE": str(local)}


@pytest.fixture
def started(job: Callable[..., Job], monkeypatch: pytest.MonkeyPatch) -> Callable[..., object]:
    """The machine of a command that a launcher has started with these variables."""
    # Lightning remembers the rank of a distributed process for good; only the process with rank 0 writes logs.
    monkeypatch.setattr(rank_zero_only, "rank", rank_zero_only.rank)

    def choose(environment: dict[str, str], **changes: object) -> object:
        for name in [name for name in os.environ if name.startswith("SLURM_")]:
            monkeypatch.delenv(name)
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        return choose_machine(job("train", trainer__accelerator="cpu", **changes).settings.trainer)

    return choose


@pytest.mark.parametrize(
    ("environment", "devices", "nodes", "sentence"),
    [
        (slurm(2, None, 1), 2, 1, "The SLURM job has --ntasks=2, which leaves open .*: use --ntasks-per-node=2"),
        (
            slurm(4, 2, 2),
            1,
            1,
            "SLURM has started 4 processes on 2 machines, each of which would train a copy of the run: add trainer=ddp "
            r"trainer\.devices=2 trainer\.num_nodes=2, or start only one",
        ),
        (
            slurm(2, 1, 2),
            2,
            2,
            r"SLURM has started 2 processes on 2 machines, but trainer\.devices=2 and trainer\.num_nodes=2 need 2 on "
            r"each of 2: set trainer\.devices=1 trainer\.num_nodes=2, or start as many as that",
        ),
        (slurm(2, 2, 1), 1, 2, r"SLURM has started 2 processes on 1 machine, .*: set trainer\.devices=2"),
        (slurm(1, 1, 1), 2, 1, "SLURM has started 1 process on 1 machine, but"),
        (torchrun(2, 2), 1, 1, "torchrun has started 2 processes on 1 machine, each of which would train a copy"),
        (torchrun(1, 1), 2, 1, r"torchrun has started 1 process on 1 machine, but trainer\.devices=2"),
        ({}, 1, 2, r"trainer\.num_nodes is 2, but nothing tells .*: start the command with torchrun or srun, or add "),
    ],
)
def test_another_number_of_processes_than_the_settings_need_is_a_mistake(
    started: Callable[..., object], environment: dict[str, str], devices: int, nodes: int, sentence: str
) -> None:
    changes = {"trainer__devices": devices, "trainer__num_nodes": nodes}
    with pytest.raises(Mistake, match=sentence):
        started(environment, **changes, **({"trainer": "ddp"} if devices * nodes > 1 else {}))


def test_a_batch_script_without_srun_is_a_mistake(started: Callable[..., object]) -> None:
    script = slurm(2, 2, 1)
    del script["SLURM_STEP_ID"]
    with pytest.raises(Mistake, match=r"this is the batch script itself, .*: write srun in front of the command"):
        started(script, trainer="ddp", trainer__devices=2)


@pytest.mark.parametrize(
    ("environment", "devices", "nodes"),
    [
        (slurm(4, 2, 2), 2, 2),
        (slurm(1, None, 1), 1, 1),
        (torchrun(4, 2), 2, 2),
        (slurm(1, None, 1) | torchrun(2, 2), 2, 1),
        (slurm(8, None, 1, SLURM_JOB_NAME="interactive"), 2, 1),
        ({"MASTER_ADDR": "10.0.0.1", "NODE_RANK": "1"}, 2, 2),
    ],
)
def test_processes_that_were_started_as_the_settings_say(
    started: Callable[..., object], environment: dict[str, str], devices: int, nodes: int
) -> None:
    changes = {"trainer__devices": devices, "trainer__num_nodes": nodes}
    machine = started(environment, **changes, **({"trainer": "ddp"} if devices * nodes > 1 else {}))
    assert machine == (devices * nodes, "cpu")


def test_srun_on_a_login_node_is_not_worth_a_warning(
    started: Callable[..., object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    srun = tmp_path / "srun"
    srun.write_text("#!/bin/sh\n")
    srun.chmod(0o755)
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        quiet(leader=True)
        started({"PATH": str(tmp_path)})
    assert [str(warning.message) for warning in shown if "srun" in str(warning.message)] == []
