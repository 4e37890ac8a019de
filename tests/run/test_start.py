"""A training that begins with the weights and tokenizers of a finished run."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from nmt.run.compose import Job
from nmt.run.train import train

# So small a rate that the weights stay what they were.
STILL = {"optimizer__lr": 1e-20, "start_from": "run", "run_dir": "new"}


def test_it_begins_with_the_weights_and_the_tokenizer_of_the_run(
    job: Callable[..., Job], trained: Path, corpus_copy: Path
) -> None:
    # Another corpus, whose own tokenizer would be another one.
    train(job("train", **STILL, data__train="[valid]", filters__drop_duplicates="false", trainer__max_steps=2))
    new = corpus_copy / "new"
    assert (new / "tokenizer.model").read_bytes() == (trained / "tokenizer.model").read_bytes()
    before, after = (load_file(run / "model.safetensors") for run in (trained, new))
    torch.testing.assert_close(after, before)


def test_it_goes_on_after_that_run_is_gone(job: Callable[..., Job], trained: Path, corpus_copy: Path) -> None:
    train(job("train", **STILL, trainer__max_steps=4))
    shutil.rmtree(trained)
    train(job("train", run_dir="new", resume="true", trainer__max_steps=5))
    assert "start_from: run" in (corpus_copy / "new" / "config.yaml").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model__dim": 14}, "start_from=run has weights of another model: give the model, its sizes and scorer as in"),
        ({"scorer": "additive"}, "start_from=run has weights of another model"),
        ({"direction": "vi-en"}, "start_from=run translates en-vi, not vi-en: give direction=en-vi, or another run"),
    ],
)
def test_a_run_that_does_not_fit_is_refused(
    job: Callable[..., Job], trained: Path, corpus_copy: Path, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        train(job("train", **STILL, **changes))
    assert not (corpus_copy / "new").exists()
