"""A device whose memory is full, played by a model that takes batches of some size only."""

import logging
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from nmt.commands.train import train
from nmt.config.job import Job
from nmt.data.batch import Batch
from nmt.errors import CheckFailed, Mistake
from nmt.runs.directory import RunDirectory
from nmt.runs.memory import OutOfMemory
from nmt.training.kind import TrainingKind
from nmt.training.preparation import Prepared, prepare
from nmt.training.task import TranslationTask

Limit = Callable[[int, int], None]


@pytest.fixture
def limit(monkeypatch: pytest.MonkeyPatch) -> Limit:
    """Lets the device hold so many source tokens; fewer from the given step of the training on."""
    loss = TranslationTask.loss

    def set_limit(tokens: int, since: int) -> None:
        def limited(task: TranslationTask, batch: Batch) -> torch.Tensor:
            if task.trainer.global_step >= since and batch.source.numel() > tokens:
                torch.empty(1 << 62, dtype=torch.uint8)  # more than any machine has
            return loss(task, batch)

        monkeypatch.setattr(TranslationTask, "loss", limited)

    return set_limit


def test_the_batches_are_halved_once_and_the_same_command_goes_on(
    corpus: Path,
    job: Callable[..., Job],
    limit: Limit,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.chdir(corpus)
    limit(60, since=0)
    freed: list[TranslationTask] = []
    monkeypatch.setattr(TranslationTask, "forget_recorded_steps", lambda task: freed.append(task))
    with caplog.at_level(logging.WARNING):
        train(job("train", trainer__max_steps=4, batching__batch_tokens=101))
    assert len(freed) == 1 + 2, "after the failure, and at the end of training and of fit"
    change = "batching.batch_tokens=50 trainer.accumulate_grad_batches=2"
    assert f"Out of memory: starting over with {change}." in caplog.text
    run = RunDirectory(Path("run"))
    assert run.config()["batching"]["batch_tokens"] == 50
    assert run.config()["trainer"]["accumulate_grad_batches"] == 2
    assert run.metrics()["steps"] == 4
    assert all(setting in run.metrics()["command"] for setting in change.split())
    train(job("train", trainer__max_steps=6, batching__batch_tokens=101, resume="true"))
    assert run.metrics()["steps"] == 6
    assert run.config()["batching"]["batch_tokens"] == 50
    with pytest.raises(Mistake, match=r"batching\.batch_tokens is 100, but 50 in the run to resume"):
        train(job("train", trainer__max_steps=8, batching__batch_tokens=100, resume="true"))


@pytest.mark.parametrize(
    ("tokens", "context", "told"),
    [
        (401, "none", r"Out of memory with batching\.batch_tokens=200\. Start over with batching\.batch_tokens=100 "),
        (101, "none", r"Out of memory with batching\.batch_tokens=50, .* and a smaller model, or with a lower"),
        (61, "none", r"Out of memory with batching\.batch_tokens=61, and the longest sentence has \d+ tokens"),
        (201, "concatenate", r"Out of memory with batching\.batch_tokens=201, and the longest sentence has \d+ tokens"),
    ],
    ids=["half is too much", "a quarter is less than a sentence", "half is", "half is less than those before it too"],
)
def test_what_cannot_be_halved_again_ends_with_a_sentence(
    corpus_copy: Path, job: Callable[..., Job], limit: Limit, tokens: int, context: str, told: str
) -> None:
    if context != "none":
        lines = (corpus_copy / "train.en").read_text(encoding="utf-8").count("\n")
        (corpus_copy / "train.doc").write_text("a\n" * lines, encoding="utf-8")
    limit(0, since=0)
    with pytest.raises(CheckFailed, match=told):
        train(job("train", trainer__max_steps=4, batching__batch_tokens=tokens, context=context, overwrite="true"))


@pytest.mark.parametrize(
    ("error", "raised", "told"),
    [
        (torch.OutOfMemoryError("out of memory"), CheckFailed, r"complete: free some memory, and add resume=true to"),
        (OutOfMemory("lower batch_tokens"), CheckFailed, r"complete: free some memory, and add resume=true to"),
        (RuntimeError("a bug"), RuntimeError, "a bug"),
    ],
    ids=["memory", "memory with a remedy of the search", "a bug"],
)
def test_a_training_that_cannot_be_scored_is_whole(
    corpus: Path,
    job: Callable[..., Job],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: Exception,
    raised: type[Exception],
    told: str,
) -> None:
    def full(*_: object) -> None:
        raise error

    monkeypatch.chdir(corpus)
    with monkeypatch.context() as patch:
        patch.setattr("nmt.commands.train.score_test_split", full)
        with pytest.raises(raised, match=told):
            train(job("train", trainer__max_steps=4))
    train(job("train", trainer__max_steps=4, resume="true"))
    assert capsys.readouterr().out.startswith("run\ntest BLEU")


def test_steps_that_were_made_are_not_thrown_away(
    corpus: Path, job: Callable[..., Job], limit: Limit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(corpus)
    limit(0, since=3)
    told = (
        r"Start over with batching\.batch_tokens=50 trainer\.accumulate_grad_batches=2 overwrite=true, or resume=true"
    )
    with pytest.raises(CheckFailed, match=told):
        train(job("train", trainer__max_steps=6, validation__every=2))
    assert (corpus / "run" / "checkpoints" / "last.ckpt").is_file()


def test_a_run_that_is_written_while_the_halved_one_is_prepared_is_kept(
    corpus: Path, job: Callable[..., Job], limit: Limit, monkeypatch: pytest.MonkeyPatch
) -> None:
    def prepare_beside_another(
        job: Job, run: RunDirectory, kind: TrainingKind, *, resumes: bool, changes: dict[str, int]
    ) -> Prepared:
        prepared = prepare(job, run, kind, resumes=resumes, changes=changes)
        if changes:
            run.write_metrics({"finished": False, "by": "another"})
        return prepared

    monkeypatch.chdir(corpus)
    monkeypatch.setattr("nmt.commands.train.prepare", prepare_beside_another)
    limit(60, since=0)
    with pytest.raises(Mistake, match="Another process has written to run in the meantime; run the command again"):
        train(job("train", trainer__max_steps=4, batching__batch_tokens=101))
    assert RunDirectory(Path("run")).metrics()["by"] == "another"
