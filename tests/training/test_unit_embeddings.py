"""Runs with FixNorm, a moving average and bfloat16, the Transformer's with ScaleNorm too, averaged and rounded."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from jobs import job_of

import nmt
from nmt.cli.compose import configuration
from nmt.commands.average import average
from nmt.commands.train import train
from nmt.runs.precision import with_precision
from nmt.scoring.forced_scores import log_probs

EPS = torch.finfo(torch.float32).eps
MODELS = {
    "transformer": ["norm@model=scale_norm"],
    "luong": [
        "model=luong",
        "model.embedding_dim=8",
        "model.encoder_dim=12",
        "model.decoder_dim=12",
        "model.num_layers=1",
    ],
}
# The lengths of the embeddings' rows and of the output layer's.
LENGTHS = {"transformer": (1.0, 1.0), "luong": (8**0.5, 5.0)}
RECIPE = {
    "model.fix_norm": "true",
    "initializer": "small",
    "objective": "r_drop",
    "subword_sampling": 0.1,
    "word_dropout": 0.1,
    "ema_decay": 0.9,
    "trainer.precision": "bf16-mixed",
    "trainer.max_steps": 4,
    "validation.every": 2,
    "checkpoints.recent": 2,
}


@pytest.fixture(scope="session", params=MODELS)
def unit(request: pytest.FixtureRequest, session_corpus: Path, tiny: Callable[..., list[str]]) -> Path:
    run = session_corpus / f"unit_{request.param}"
    own = [each for each in tiny() if request.param == "transformer" or not each.startswith("model")]
    recipe = [f"{key}={value}" for key, value in RECIPE.items()]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(session_corpus)
        torch.set_num_threads(1)
        # A process that gets its tests out of order makes a parameter again.
        overrides = [*own, *MODELS[request.param], *recipe, f"run_dir={run.name}", "overwrite=true"]
        train(job_of("train", configuration("train", overrides), command="python -m nmt.train THE COMMAND"))
    return run


def test_its_mean_is_a_run_with_rows_of_these_lengths(
    unit: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(unit.parent)
    config = configuration("average", []) | {"run_dir": str(unit), "out": str(tmp_path / "mean"), "device": "cpu"}
    average(job_of("average", config | {"checkpoints": "recent"}, command="python -m nmt.average THE COMMAND"))
    model = nmt.load(tmp_path / "mean", device="cpu").runs[0].model
    for part, length in zip(
        (model.target_embedding, model.output), LENGTHS[unit.name.removeprefix("unit_")], strict=True
    ):
        norms = part.weight.double().norm(dim=-1)
        # The norm that a row was divided by is a root of a sum of `width` squares; then a division and a product.
        width = part.weight.shape[1]
        torch.testing.assert_close(norms, torch.full_like(norms, length), rtol=(width + 2) * EPS, atol=0)
    assert not any("parametrizations" in name for name, _ in model.named_parameters())


@pytest.mark.parametrize("precision", ["bfloat16", "int8"])
def test_it_can_be_rounded(unit: Path, precision: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(unit.parent)
    exact, rounded = (nmt.load(unit, device="cpu", precision=name) for name in ("float32", precision))
    pair = (["one two three."], ["một hai ba."])
    assert rounded.score(*pair) != exact.score(*pair)
    [trained] = exact.runs
    converted = trained._replace(model=with_precision(trained.model, precision, trained.device))
    assert rounded.score(*pair) == log_probs([converted], *pair)
