"""A device whose memory is full, played by a model that takes batches of some size only."""

import logging
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from nmt.data.batch import Batch
from nmt.run.compose import Job
from nmt.run.exits import CheckFailed
from nmt.run.rundir import RunDirectory
from nmt.run.train import train
from nmt.training.task import TranslationTask

Limit = Callable[[int, int], None]


@pytest.fixture
def limit(monkeypatch: pytest.MonkeyPatch) -> Limit:
    """Lets the device hold so many source tokens; fewer from the given batch of the training on."""
    own = TranslationTask.training_step

    def set_limit(tokens: int, since: int) -> None:
        def step(task: TranslationTask, batch: Batch, batch_idx: int) -> torch.Tensor:
            if batch_idx >= since and batch.source.numel() > tokens:
                raise torch.OutOfMemoryError("out of memory")
            return own(task, batch, batch_idx)

        monkeypatch.setattr(TranslationTask, "training_step", step)

    return set_limit


def test_the_batches_are_halved_once_and_the_steps_stay_as_large(
    corpus: Path,
    job: Callable[..., Job],
    limit: Limit,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.chdir(corpus)
    limit(60, since=0)
    with caplog.at_level(logging.WARNING):
        train(job("train", trainer__max_steps=4))
    change = "batching.batch_tokens=50 trainer.accumulate_grad_batches=2"
    assert f"The memory of the device is full: beginning again with {change}." in caplog.text
    run = RunDirectory(Path("run"))
    assert run.config()["batching"]["batch_tokens"] == 50
    assert run.config()["trainer"]["accumulate_grad_batches"] == 2
    assert run.metrics()["steps"] == 4
    assert all(setting in run.metrics()["command"] for setting in change.split())


def test_when_half_is_too_much_it_ends_with_a_sentence(
    corpus: Path, job: Callable[..., Job], limit: Limit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(corpus)
    limit(0, since=0)
    with pytest.raises(CheckFailed, match=r"half the batches \(batching\.batch_tokens=50\) too: begin again with a"):
        train(job("train", trainer__max_steps=4))


def test_steps_that_were_made_are_not_thrown_away(
    corpus: Path, job: Callable[..., Job], limit: Limit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(corpus)
    limit(0, since=3)
    told = (
        r"Begin again with batching\.batch_tokens=50 trainer\.accumulate_grad_batches=2 overwrite=true, or go on with"
    )
    with pytest.raises(CheckFailed, match=told):
        train(job("train", trainer__max_steps=6, validation__every=2))
    assert (corpus / "run" / "checkpoints" / "last.ckpt").is_file()
