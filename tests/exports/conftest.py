"""A tiny run that has learned to translate, so that its translations have one clear best."""

import contextlib
import io
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from shared import made_once
from tiny import write_corpora

from nmt.commands.train import train
from nmt.config.job import Job


@pytest.fixture(scope="session")
def learned(job: Callable[..., Job], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The corpus, with a Transformer in `run` that translates most of its numbers."""

    def make(folder: Path) -> None:
        torch.set_num_threads(1)
        with contextlib.chdir(write_corpora(folder)), contextlib.redirect_stdout(io.StringIO()):
            train(
                job(
                    "train",
                    model__dim=32,
                    model__ffn_dim=64,
                    model__dropout=0.0,
                    trainer__max_steps=120,
                    validation__every=120,
                    validation__probes=1,
                    batching__batch_tokens=600,
                    # The usual limits, within which other engines translate as torch does.
                    search__constraints__max_length_ratio=2.0,
                    search__constraints__max_length_offset=10,
                )
            )

    return made_once(tmp_path_factory, "learned", make)


@pytest.fixture
def run(learned: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """That run in a copy of its corpus, entered."""
    shutil.copytree(learned, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return Path("run")
