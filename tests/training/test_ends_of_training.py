"""What ends a training, or lowers its rate, by what validation finds or by the clock; and which weights are kept."""

import json
import logging
import re
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import torch
from lightning.pytorch.callbacks import timer

from nmt.commands.train import train
from nmt.config.job import Job
from nmt.errors import CheckFailed, Mistake
from nmt.training.validation import ValidationBleu

BLEU = [3.0, 9.0, 5.0, 9.0, 7.0, 8.0]
"""Of the validations after steps 1, 2, ...: the second is the best, and the fourth no better."""
LOWERED = {
    "validation__monitor": "bleu",
    "validation__every": 1,
    "validation__patience": 4,
    "checkpoints__keep": 2,
    "schedule": "plateau",
    "schedule__patience": 0,
    "schedule__factor": 0.5,
    "optimizer__lr": 0.01,
    "data__test": "null",
}


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every training gets BLEU by its step."""
    monkeypatch.setattr(ValidationBleu, "_measure", lambda self, trainer, task: BLEU[trainer.global_step - 1])


@pytest.fixture
def moved_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock of Lightning's timer moves by a second whenever it is read."""
    monkeypatch.setattr(timer, "time", Mock(monotonic=count(0.0, 1.0).__next__))


def last(run: Path) -> dict[str, Any]:
    return torch.load(run / "checkpoints" / "last.ckpt", weights_only=True)


def ended(run: Path) -> tuple[int, float]:
    """The last step and the rate after it."""
    checkpoint = last(run)
    return checkpoint["global_step"], checkpoint["optimizer_states"][0]["param_groups"][0]["lr"]


@pytest.mark.usefixtures("scripted")
def test_the_best_validation_is_kept_and_others_lower_the_rate_until_patience_ends(
    job: Callable[..., Job], corpus_copy: Path
) -> None:
    train(job("train", run_dir="new", trainer__max_steps=99, **LOWERED))
    best = json.loads((corpus_copy / "new" / "metrics.json").read_text(encoding="utf-8"))["best"]
    # Of equal ones the later; for the rate and for patience it is none better.
    assert best == {"step": 4, "metric": "valid_bleu", "value": 9.0}
    assert ended(corpus_copy / "new") == (6, 0.01 * 0.5**4)


@pytest.mark.usefixtures("scripted")
def test_patience_and_rate_go_on_where_a_run_was_stopped(job: Callable[..., Job], corpus_copy: Path) -> None:
    train(job("train", run_dir="new", trainer__max_steps=4, **LOWERED))
    assert ended(corpus_copy / "new") == (4, 0.01 * 0.5**2)
    train(job("train", run_dir="new", resume="true", trainer__max_steps=99))
    assert ended(corpus_copy / "new") == (6, 0.01 * 0.5**4)


@pytest.mark.usefixtures("scripted")
def test_a_run_that_patience_has_ended_goes_on_with_more_of_it(
    job: Callable[..., Job],
    corpus_copy: Path,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.INFO, "nmt")
    reached = "validation.patience=2 (2 validations since the best)"
    train(job("train", run_dir="new", trainer__max_steps=99, **LOWERED | {"validation__patience": 2}))
    assert f"Training ended at step 4: {reached}" in caplog.text
    with pytest.raises(Mistake, match=f"finished and has reached {re.escape(reached)}: raise every limit"):
        train(job("train", run_dir="new", resume="true", trainer__max_steps=100))
    printed = capsys.readouterr().out
    weights = (corpus_copy / "new" / "model.safetensors").stat()
    for more in ({"trainer__devices": 2}, {}):  # nothing is left to do
        train(job("train", run_dir="new", resume="true", **more))
        assert capsys.readouterr().out == printed
        assert f"finished and has reached {reached}. To train it longer, raise trainer.max_steps, " in caplog.text
    assert (corpus_copy / "new" / "model.safetensors").stat() == weights
    with pytest.raises(Mistake, match=r"reached trainer\.max_steps=4 .* and validation\.patience=1 \(2 validations"):
        train(job("train", run_dir="new", resume="true", validation__patience=1, trainer__max_steps=4))
    train(job("train", run_dir="new", resume="true", validation__patience=4))
    assert ended(corpus_copy / "new")[0] == 6


@pytest.mark.usefixtures("moved_clock")
def test_a_training_ends_by_the_clock_with_a_validation_and_a_score(
    job: Callable[..., Job], corpus_copy: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "nmt")
    changes = {"trainer__max_steps": 200, "trainer__max_time": "00:00:00:20", "validation__every": 10**6}
    train(job("train", run_dir="new", **changes))
    metrics = json.loads((corpus_copy / "new" / "metrics.json").read_text(encoding="utf-8"))
    assert 1 < metrics["steps"] < 99
    assert metrics["best"]["step"] == metrics["steps"]
    assert metrics["scores"]["test"]
    assert f"Training ended at step {metrics['steps']}: trainer.max_time=00:00:00:20 (" in caplog.text


@pytest.mark.usefixtures("moved_clock")
def test_a_run_that_the_clock_has_ended_goes_on_with_more_time_alone(
    job: Callable[..., Job], corpus_copy: Path
) -> None:
    """More than it has used: its last validation went beyond the limit."""
    train(job("train", run_dir="new", trainer__max_steps=200, trainer__max_time="00:00:00:20"))
    before = [(corpus_copy / "new" / name).read_bytes() for name in ("config.yaml", "metrics.json")]
    used = round(json.loads(before[1])["wall_time_seconds"])
    assert used > 20
    for limit, more in ((20, {"trainer__max_steps": 300}), (used, {"trainer__max_time": f"00:00:00:{used}"})):
        with pytest.raises(
            Mistake, match=rf"has reached trainer\.max_time=00:00:00:{limit} \(\d+ seconds\): raise every limit"
        ):
            train(job("train", run_dir="new", resume="true", **more))
    assert [(corpus_copy / "new" / name).read_bytes() for name in ("config.yaml", "metrics.json")] == before
    step = ended(corpus_copy / "new")[0]
    train(job("train", run_dir="new", resume="true", trainer__max_time="null", trainer__max_steps=step + 1))
    assert ended(corpus_copy / "new")[0] == step + 1


def test_a_run_that_its_epochs_have_ended_is_told_so(
    job: Callable[..., Job], corpus_copy: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "nmt")
    train(job("train", run_dir="new", trainer__max_steps="null", trainer__max_epochs=1))
    steps = ended(corpus_copy / "new")[0]
    assert f"Training ended at step {steps}: trainer.max_epochs=1" in caplog.text
    for more in ({"trainer__max_steps": steps + 1}, {"validation__patience": 99}):
        with pytest.raises(
            Mistake, match=f"done all {steps} steps of its epochs: .* raise trainer.max_epochs or set it to null"
        ):
            train(job("train", run_dir="new", resume="true", **more))


def test_steps_that_are_not_finite_are_skipped_as_often_as_it_is_asked(
    job: Callable[..., Job], corpus_copy: Path, caplog: pytest.LogCaptureFixture
) -> None:
    changes = {"optimizer__lr": 1e30, "trainer__gradient_clip_val": "null", "max_skipped_steps": 2}
    with pytest.raises(CheckFailed, match="resume=true max_skipped_steps=5, which skips up to three more"):
        train(job("train", run_dir="new", **changes))
    assert "is skipped (2 of 2): At step" in caplog.text
