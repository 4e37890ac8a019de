"""Two processes train as one does with the same steps; a dead one ends the other; one goes on where two stopped."""

import contextlib
import importlib
import io
import json
import logging
import os
import re
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from lightning.fabric.strategies.launchers.subprocess_script import _ChildProcessObserver
from processes import children_of, is_gone

from nmt.commands.train import train
from nmt.config.job import Job
from nmt.runs.directory import RunDirectory
from nmt.training.machine import quiet
from nmt.training.stopping import Stopped

STEPS = {
    "trainer__max_steps": 20,
    "trainer__accumulate_grad_batches": 2,
    "trainer__log_every_n_steps": 1,
    "validation__every": 10,
    "model__dropout": 0.0,
    # The order of sums differs, and float64 rounds them so little that the bounds hold on every machine.
    "trainer__precision": "64-true",
    # Adam makes full steps of what is nothing but rounding: the gradient of an inner product's key bias is 0.
    "optimizer": "sgd",
    "optimizer__lr": 0.3,
    "schedule": "constant",
}
# A gradient is a sum over at most a thousand tokens and passes through some ten sums of at most a hundred terms; a step
# adds one such error and may enlarge the earlier ones by 1 + lr, over 20 steps by 1.3^20 = 190.
ROUNDED = 190 * (1000 + 10 * 100) * torch.finfo(torch.float64).eps
TWO = {"trainer__devices": 2, "trainer": "ddp"}
MACHINES = {"trainer__devices": 1, "trainer": "ddp", "trainer__num_nodes": 2}

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").is_file(), reason="looks for processes in /proc")

Start = Callable[..., Any]
Tiny = Callable[..., list[str]]


def last(run: Path) -> dict[str, Any]:
    return torch.load(run / "checkpoints" / "last.ckpt", weights_only=True)


def ended(process: Any) -> str:
    errors = process.communicate()[1]
    assert process.returncode == 0, errors
    return errors


def close(runs: Path) -> None:
    """The weights and the validation losses of two runs."""
    one, other = (last(runs / name) for name in ("one", "two"))
    losses = [
        json.loads((runs / name / "metrics.json").read_text(encoding="utf-8"))["best"]["value"]
        for name in ("one", "two")
    ]
    assert losses[0] == pytest.approx(losses[1], rel=ROUNDED, abs=0)
    assert one["global_step"] == other["global_step"] == 20
    assert one["target_tokens"] == other["target_tokens"]
    for name, value in one["state_dict"].items():
        assert value.dtype == torch.float64
        apart = (value - other["state_dict"][name]).norm()
        assert apart <= ROUNDED * value.norm(), name


@pytest.fixture
def two_machines(start: Start) -> Callable[[list[str]], list[Any]]:
    """Starts a command as one process on each of two machines. They are forked; with two devices,
    Lightning would start a process that has to import torch first.
    """

    def begin(overrides: list[str]) -> list[Any]:
        variables = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port(), "LOCAL_RANK": "0"}
        return [start("train", *overrides, variables={**variables, "NODE_RANK": str(number)}) for number in (0, 1)]

    return begin


def free_port() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return str(free.getsockname()[1])


def one_alone(job: Callable[..., Job], corpus: Path, **changes: object) -> None:
    """The same training by one process."""
    with contextlib.chdir(corpus), contextlib.redirect_stdout(io.StringIO()):
        train(job("train", **{**STEPS, **changes, "trainer__accumulate_grad_batches": 4}, run_dir="one"))


@pytest.mark.parametrize("where", ["machines", pytest.param("devices", marks=pytest.mark.soak)])
def test_two_processes_take_the_steps_of_one(
    corpus: Path, start: Start, two_machines: Callable[..., Any], tiny: Tiny, job: Callable[..., Job], where: str
) -> None:
    # With unit embeddings, which train other parameters than they keep.
    changes = {"model__fix_norm": "true"}
    if where == "machines":
        # The second process waits until the first has written the run directory.
        processes = two_machines(tiny(**STEPS, **MACHINES, **changes, run_dir="two"))
    else:
        # Lightning starts the second process then; with auto, both train the same new run.
        processes = [start("train", *tiny(**STEPS, **TWO, **changes, run_dir="two"), "resume=auto")]
    one_alone(job, corpus, **changes)
    for process in processes:
        ended(process)
    close(corpus)


@pytest.mark.parametrize("where", ["machines", pytest.param("devices", marks=pytest.mark.soak)])
def test_one_process_goes_on_where_two_were_stopped(
    corpus: Path, start: Start, two_machines: Callable[..., Any], tiny: Tiny, job: Callable[..., Job], where: str
) -> None:
    if where == "machines":
        two, *others = two_machines(tiny(**STEPS, **MACHINES, run_dir="two"))
        single = {**MACHINES, "trainer__num_nodes": 1}
    else:
        two, *others = [start("train", *tiny(**STEPS, **TWO, run_dir="two"))]
        single = {**TWO, "trainer__devices": 1}
    assert two.stderr is not None
    next(line for line in two.stderr if line.startswith("step 3/"))
    for process in (two, *others):
        process.send_signal(signal.SIGTERM)
    errors = two.communicate()[1]
    assert two.returncode == 143, errors
    for process in others:
        assert process.wait(timeout=60) == 0, "only the exit code of the leader counts"
    step = last(corpus / "two")["global_step"]
    assert 3 <= step < 20
    # The command that began it, with another number of processes.
    resumed = start("train", *tiny(**STEPS, **single, run_dir="two"), "resume=auto")
    one_alone(job, corpus)
    errors = ended(resumed)
    assert "warning: Resumed on 1 devices with trainer.accumulate_grad_batches=4" in errors
    close(corpus)


def test_a_dead_machine_ends_the_other_within_a_minute(two_machines: Callable[..., Any], tiny: Tiny) -> None:
    leader, other = two_machines(tiny(**{**STEPS, "trainer__max_steps": 100000}, **MACHINES, run_dir="two"))
    assert leader.stderr is not None
    next(line for line in leader.stderr if line.startswith("step 5/"))
    other.kill()
    errors = leader.communicate(timeout=60)[1]
    assert leader.returncode not in (0, None)
    assert re.search(r"[Cc]onnection (closed|reset)", errors), errors


@pytest.mark.soak
@pytest.mark.parametrize("dies", ["the other", "the leader"])
def test_a_dead_process_ends_the_other_within_a_minute(corpus: Path, start: Start, tiny: Tiny, dies: str) -> None:
    two = start("train", *tiny(**{**STEPS, "trainer__max_steps": 100000}, **TWO, run_dir="two"))
    assert two.stderr is not None
    next(line for line in two.stderr if line.startswith("step 5/"))
    [other] = [child for child in children_of(two.pid) if b"nmt.train" in Path(f"/proc/{child}/cmdline").read_bytes()]
    os.kill(two.pid if dies == "the leader" else other, signal.SIGKILL)
    begun = time.monotonic()
    errors = two.communicate(timeout=60)[1]
    while not is_gone(other) and time.monotonic() < begun + 60:
        time.sleep(0.1)
    assert is_gone(other)
    assert two.returncode != 0
    # Whichever comes first: the process that waits for the dead one finds it gone, or it is ended for that.
    assert re.search(r"terminated with code -9|[Cc]onnection (closed|reset)", errors), errors


@pytest.mark.unchecked
@pytest.mark.parametrize("name", ["train", "pretrain"])
def test_a_signal_ends_the_other_processes_without_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """They have no result, and the exit code of SLURM's srun must be that of the leader."""

    def stopped(prepared: object) -> None:
        raise Stopped(143)

    monkeypatch.setenv("RANK", "1")
    module = importlib.import_module(f"nmt.commands.{name}")
    prepared = SimpleNamespace(run=RunDirectory(tmp_path / "run"))
    monkeypatch.setattr(module, "prepare", lambda *_, **__: prepared)
    monkeypatch.setattr(module, "fit", stopped)
    settings = SimpleNamespace(run_dir=tmp_path / "run", resume=False)
    getattr(module, name)(SimpleNamespace(settings=settings, sweep_dir=None))


def test_a_signal_ends_a_process_that_waits_for_another_machine(start: Start, tiny: Tiny) -> None:
    variables = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port(), "NODE_RANK": "0", "LOCAL_RANK": "0"}
    process = start("train", *tiny(**STEPS, **MACHINES, run_dir="two"), variables=variables)
    assert process.stderr is not None
    next(line for line in process.stderr if line.startswith("Waiting for all 2 processes on 2 machines"))
    time.sleep(1)
    process.send_signal(signal.SIGTERM)
    errors = process.communicate(timeout=60)[1]
    assert process.returncode == 143, errors
    assert errors.endswith("SIGTERM: ended while waiting for other processes\n")


def test_the_line_that_names_a_dead_process_is_not_silenced() -> None:
    quiet(leader=True)
    assert logging.getLogger(_ChildProcessObserver.__module__).isEnabledFor(logging.INFO)
