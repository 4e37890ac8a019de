"""Two processes train as one does with the same steps; a dead one ends the other; one goes on where two stopped."""

import importlib
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


def test_two_processes_take_the_steps_of_one(corpus: Path, start: Start, tiny: Tiny) -> None:
    # With unit embeddings, which train other parameters than they keep.
    changes = {"model__fix_norm": "true"}
    # The second process starts when the first has written the run directory; with auto, both train the same new run.
    two = start("train", *tiny(**STEPS, **TWO, **changes, run_dir="two"), "resume=auto")
    one = start("train", *tiny(**{**STEPS, "trainer__accumulate_grad_batches": 4}, **changes, run_dir="one"))
    ended(two)
    ended(one)
    close(corpus)


def test_one_process_goes_on_where_two_were_stopped(corpus: Path, start: Start, tiny: Tiny) -> None:
    two = start("train", *tiny(**STEPS, **TWO, run_dir="two"))
    assert two.stderr is not None
    next(line for line in two.stderr if line.startswith("step 3/"))
    two.send_signal(signal.SIGTERM)
    errors = two.communicate()[1]
    assert two.returncode == 143, errors
    step = last(corpus / "two")["global_step"]
    assert 3 <= step < 20
    # The command that began it, with another number of devices.
    resumed = start("train", *tiny(**STEPS, **{**TWO, "trainer__devices": 1}, run_dir="two"), "resume=auto")
    one = start("train", *tiny(**{**STEPS, "trainer__accumulate_grad_batches": 4}, run_dir="one"))
    errors = ended(resumed)
    assert "warning: Resumed on 1 devices with trainer.accumulate_grad_batches=4" in errors
    ended(one)
    close(corpus)


@pytest.mark.parametrize("dies", ["the other", pytest.param("the leader", marks=pytest.mark.soak)])
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
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    variables = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "NODE_RANK": "0", "LOCAL_RANK": "0"}
    alone = {"trainer__devices": 1, "trainer": "ddp", "trainer__num_nodes": 2}
    process = start("train", *tiny(**STEPS, **alone, run_dir="two"), variables=variables)
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
