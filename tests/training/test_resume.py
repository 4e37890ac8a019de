"""A run that is killed in the middle of an epoch and resumed ends with the very weights of one that was not."""

import contextlib
import io
import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from safetensors.torch import load_file

from nmt.cli.compose import job_of
from nmt.commands.train import train
from nmt.config.job import Job
from nmt.errors import Mistake
from nmt.training.origin import stored_keys
from nmt.training.resume import resumed_config

CHANGES = {
    "trainer__max_steps": 28,
    "trainer__accumulate_grad_batches": 2,
    "trainer__log_every_n_steps": 2,
    "validation__every": 7,
    "validation__monitor": "bleu",
    "model__dropout": 0.3,
}


STOPPED = {**CHANGES, "trainer__max_steps": 12, "validation__every": 10, "ema_decay": 0.9}


class Whole(NamedTuple):
    """A run that was not stopped."""

    run: Path
    output: str


def trained_whole(job: Callable[..., Job], corpus: Path, name: str, changes: dict[str, object]) -> Whole:
    output = io.StringIO()
    with contextlib.chdir(corpus), contextlib.redirect_stdout(output):
        train(job("train", **changes, run_dir=name))
    return Whole(corpus / name, output.getvalue())


@pytest.fixture(scope="session")
def whole(job: Callable[..., Job], session_corpus: Path) -> Whole:
    return trained_whole(job, session_corpus, "uninterrupted", CHANGES)


@pytest.fixture(scope="session")
def whole_averaged(job: Callable[..., Job], session_corpus: Path) -> Whole:
    return trained_whole(job, session_corpus, "uninterrupted_averaged", STOPPED)


@pytest.mark.parametrize(("steps", "warned"), [(20, False), (40, True)])
def test_only_a_longer_training_is_warned_that_its_schedule_stays(
    job: Callable[..., Job], steps: int, warned: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """A shorter one has a warning of its own, with another remedy."""
    stored = stored_keys(job("train", schedule="cosine", trainer__max_steps=30).config)
    asked = job("train", resume="true", trainer__max_steps=steps)
    assert resumed_config(asked, stored, {}, Path("run"))["trainer"]["max_steps"] == steps
    assert ("the learning rate still decays over 30 steps" in caplog.text) == warned


def test_an_experiment_for_another_run_is_not_ignored(caplog: pytest.LogCaptureFixture) -> None:
    def composed(*overrides: str) -> Job:
        return job_of("train", ["run_dir=x", *overrides], [])

    stored = stored_keys(composed("experiment=tears_iwslt15", "model.dropout=0.2").config)
    resumed_config(composed("experiment=tears_iwslt15", "model.dropout=0.2"), stored, {}, Path("run"))
    cosine = stored_keys(composed("experiment=sample").config)
    resumed_config(composed("experiment=sample", "trainer.max_steps=2000"), cosine, {}, Path("run"))
    assert "experiment" not in caplog.text
    assert resumed_config(composed("experiment=iwslt15_best"), stored, {}, Path("run")) == stored
    assert re.search(r"this command differs from the run to resume in \S+, \S+, \S+ and \d+ other set", caplog.text)
    with pytest.raises(
        Mistake, match=r"^With experiment=, this command has model\._target_=nmt\.models\.Luong, but the run"
    ):
        resumed_config(composed("experiment=luong2015_local_p"), stored, {}, Path("run"))


def checkpoint(run_dir: Path) -> dict[str, object]:
    return torch.load(run_dir / "checkpoints" / "last.ckpt", weights_only=True)


def assert_same(one: Path, other: Path) -> None:
    states = checkpoint(one), checkpoint(other)
    for key in ("state_dict", "optimizer_states", "lr_schedulers", "target_tokens", "global_step"):
        torch.testing.assert_close(states[0][key], states[1][key], rtol=0, atol=0)
    best = [load_file(run / "model.safetensors") for run in (one, other)]
    torch.testing.assert_close(*best, rtol=0, atol=0)


def test_a_killed_and_resumed_run_ends_with_identical_weights(
    corpus: Path, start: Callable[..., subprocess.Popen[str]], tiny: Callable[..., list[str]], whole: Whole
) -> None:
    killed = start("train", *tiny(**CHANGES, run_dir="killed"), sent=(signal.SIGKILL, 20))
    said = killed.communicate()[1]
    assert killed.returncode == -signal.SIGKILL, said
    assert checkpoint(corpus / "killed")["global_step"] == 14
    resumed = start("train", *tiny(**CHANGES, run_dir="killed"), "resume=true")
    output, errors = resumed.communicate()
    assert "resumed from last.ckpt" in errors
    assert output.startswith("killed\ntest BLEU")
    assert whole.output.splitlines()[1:] == output.splitlines()[1:]
    assert checkpoint(whole.run)["global_step"] == 28
    assert_same(whole.run, corpus / "killed")


def test_one_command_starts_a_run_resumes_it_and_does_nothing_when_it_is_finished(
    corpus: Path, start: Callable[..., subprocess.Popen[str]], tiny: Callable[..., list[str]], whole: Whole
) -> None:
    arguments = [*tiny(**CHANGES, run_dir="auto"), "resume=auto"]
    assert start("train", *arguments, sent=(signal.SIGTERM, 20)).wait() == 143
    resumed = start("train", *arguments)
    output, errors = resumed.communicate()
    assert "resumed from last.ckpt" in errors
    assert whole.output.splitlines()[1:] == output.splitlines()[1:]
    assert_same(whole.run, corpus / "auto")
    finished = start("train", *arguments)
    again, said = finished.communicate()
    assert (finished.returncode, again) == (0, output)
    assert "The run in auto is finished" in said


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        # The command that starts, resumes and repeats a run is sent SIGTERM; test_signals.py sends SIGINT.
        pytest.param(signal.SIGTERM, 143, marks=pytest.mark.soak),
        pytest.param(signal.SIGINT, 130, marks=pytest.mark.soak),
        (signal.SIGHUP, 143),
    ],
)
def test_a_run_that_is_asked_to_stop_saves_at_once_and_goes_on_from_there(
    corpus: Path,
    start: Callable[..., subprocess.Popen[str]],
    tiny: Callable[..., list[str]],
    whole_averaged: Whole,
    sent: int,
    code: int,
) -> None:
    stopped = start("train", *tiny(**STOPPED, run_dir="stopped"), sent=(sent, 5))
    errors = stopped.communicate()[1]
    assert stopped.returncode == code, errors
    step = checkpoint(corpus / "stopped")["global_step"]
    assert step in (5, 6)
    assert f"Stopped at step {step} with a checkpoint; resume=true continues from there." in errors
    resumed = start("train", *tiny(**STOPPED, run_dir="stopped"), "resume=true")
    assert whole_averaged.output.splitlines()[1:] == resumed.communicate()[0].splitlines()[1:]
    runs = whole_averaged.run, corpus / "stopped"
    assert_same(*runs)
    kept = [sorted(path.name for path in (run / "checkpoints").iterdir()) for run in runs]
    assert kept[0] == kept[1]


@pytest.mark.soak
def test_a_truncated_last_checkpoint_falls_back_to_the_one_before(
    corpus: Path, start: Callable[..., subprocess.Popen[str]], tiny: Callable[..., list[str]], whole: Whole
) -> None:
    killed = start("train", *tiny(**CHANGES, run_dir="killed"), sent=(signal.SIGKILL, 24))
    said = killed.communicate()[1]
    assert killed.returncode == -signal.SIGKILL, said
    last = corpus / "killed" / "checkpoints" / "last.ckpt"
    last.write_bytes(last.read_bytes()[:1009])
    resumed = start("train", *tiny(**CHANGES, run_dir="killed"), "resume=true")
    errors = resumed.communicate()[1]
    assert "last.ckpt is damaged and was renamed to last.damaged.ckpt; resuming from the previous one." in errors
    assert "resumed from previous.ckpt" in errors
    assert_same(whole.run, corpus / "killed")


@pytest.mark.parametrize("steps", [20, 40])
def test_a_schedule_that_is_named_again_keeps_its_length(job: Callable[..., Job], steps: int) -> None:
    stored = stored_keys(job("train", schedule="cosine", trainer__max_steps=30).config)
    given = {"schedule": "cosine", "resume": "true", "trainer__max_steps": steps}
    config = resumed_config(job("train", **given), stored, {}, Path("run"))
    assert (config["trainer"]["max_steps"], config["schedule"]["steps"]) == (steps, 30)
    with pytest.raises(Mistake, match=rf"^schedule\.steps is {steps}, but 30 in the run to resume"):
        resumed_config(job("train", **given, schedule__steps=steps), stored, {}, Path("run"))
