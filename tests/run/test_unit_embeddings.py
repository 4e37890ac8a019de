"""A run with FixNorm, ScaleNorm, a moving average and bfloat16, through all that may happen to it."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import nmt
from nmt.run.average import average
from nmt.run.compose import Job, configuration
from nmt.run.train import train

RECIPE = {
    "norm@model.norm": "scale_norm",
    "model.fix_norm": "true",
    "initializer": "small",
    "objective": "r_drop",
    "subword_sampling": 0.1,
    "word_dropout": 0.1,
    "ema_decay": 0.9,
    "trainer.precision": "bf16-mixed",
    "trainer.max_steps": 6,
    "validation.every": 2,
    "checkpoints.recent": 2,
    "run_dir": "unit",
}


@pytest.fixture(scope="module")
def unit(session_corpus: Path, tiny: Callable[..., list[str]]) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(session_corpus)
        torch.set_num_threads(1)
        overrides = [*tiny(), *(f"{key}={value}" for key, value in RECIPE.items())]
        train(Job(configuration("train", overrides), (), "python -m nmt.train THE COMMAND", None))
    return session_corpus / "unit"


def test_its_mean_is_a_run_with_unit_embeddings(unit: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(unit.parent)
    config = configuration("average", []) | {"run_dir": str(unit), "out": str(tmp_path / "mean"), "device": "cpu"}
    average(Job(config | {"checkpoints": "recent"}, (), "python -m nmt.average THE COMMAND", None))
    model = nmt.load(tmp_path / "mean", device="cpu").runs[0].model
    torch.testing.assert_close(model.target_embedding.weight.norm(dim=-1), torch.ones(293))
    assert not any("parametrizations" in name for name, _ in model.named_parameters())


@pytest.mark.parametrize(("precision", "close"), [("bfloat16", 1.0), ("int8", 3.0)])
def test_it_can_be_rounded(unit: Path, precision: str, close: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(unit.parent)
    exact, rounded = (nmt.load(unit, device="cpu", precision=name) for name in ("float32", precision))
    pair = (["one two three."], ["một hai ba."])
    assert rounded.score(*pair) == pytest.approx(exact.score(*pair), abs=close)
    assert rounded.score(*pair) != exact.score(*pair)
