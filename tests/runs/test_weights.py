"""Weights that no model can compute with, in every command that loads them."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from attention_runs import job as composed
from jobs import job_of
from safetensors.torch import load_file, save_file

import nmt
from nmt.cli.compose import configuration
from nmt.commands.align import align
from nmt.commands.attribute import attribute
from nmt.commands.average import average
from nmt.commands.compare import compare
from nmt.commands.evaluate import evaluate
from nmt.commands.train import train
from nmt.config.job import Job
from nmt.errors import CheckFailed, report
from nmt.runs.weights import DamagedWeights, load_weights
from nmt.serving.gallery import Gallery, Unavailable

RUN = "maps_transformer"


@pytest.fixture
def run(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of a run, in a copy of its corpus, entered."""
    for file in folder.iterdir():
        if file.is_file():
            shutil.copy(file, tmp_path)
    monkeypatch.chdir(tmp_path)
    return Path(shutil.copytree(folder / RUN, RUN))


def changed(file: Path, change: Callable[[torch.Tensor], torch.Tensor]) -> None:
    """Changes the last of the weights in a file."""
    weights = load_file(file)
    name = sorted(weights)[-1]
    save_file({**weights, name: change(weights[name])}, file)


def poisoned(value: float) -> Callable[[torch.Tensor], torch.Tensor]:
    def change(tensor: torch.Tensor) -> torch.Tensor:
        tensor.view(-1)[-1] = value
        return tensor

    return change


@pytest.mark.parametrize("value", [float("nan"), float("-inf")])
def test_no_command_computes_with_weights_that_are_no_numbers(
    run: Path, job: Callable[..., Job], value: float, capsys: pytest.CaptureFixture[str]
) -> None:
    gallery = Gallery([run], "cpu", "float32", max_models=1)
    changed(run / "model.safetensors", poisoned(value))
    common: dict[str, Any] = {"run_dir": RUN, "device": "cpu"}
    commands: list[Callable[[], Any]] = [
        lambda: nmt.load(run),
        lambda: align(composed("align", **common)),
        lambda: attribute(composed("attribute", **common, input="in.en", out="out")),
        lambda: evaluate(composed("evaluate", run_dir=[RUN], device="cpu")),
        lambda: compare(composed("compare", run_dirs=[RUN], device="cpu")),
        lambda: average(composed("average", **common)),
        lambda: train(job("train", run_dir="new", start_from=RUN)),
    ]
    for command in commands:
        with pytest.raises(
            DamagedWeights, match=rf"^{run}/model\.safetensors holds weights that are NaN or infinite \(.+\): copy the"
        ) as refused:
            command()
        assert report(refused.value) == 1
    assert not Path("new").exists()
    with pytest.raises(Unavailable):
        gallery.load(next(iter(gallery.offered)))


def test_a_checkpoint_of_nan_is_not_averaged(run: Path) -> None:
    [file, *_] = sorted((run / "checkpoints").glob("best-*.ckpt"))
    checkpoint = torch.load(file, weights_only=True)
    next(iter(checkpoint["state_dict"].values())).fill_(float("nan"))
    torch.save(checkpoint, file)
    with pytest.raises(DamagedWeights, match=rf"^{file} holds weights that are NaN or infinite"):
        average(job_of("average", {**configuration("average", []), "run_dir": RUN, "device": "cpu"}))
    assert not Path(f"{RUN}_average").exists()


def test_weights_of_another_number_format_are_refused(run: Path) -> None:
    file = run / "model.safetensors"
    whole = file.read_bytes()
    for kind, name in ((torch.float16, "F16"), (torch.int8, "I8"), (torch.float64, "F64")):
        file.write_bytes(whole)
        changed(file, lambda tensor, kind=kind: tensor.to(kind))  # type: ignore[misc]
        with pytest.raises(
            CheckFailed, match=rf"stores .+ as {name}, but trainer\.precision=32-true stores .* as F32: "
        ):
            nmt.load(run)


@pytest.mark.parametrize(
    ("precision", "kind"), [("64-true", torch.float64), ("bf16-true", torch.bfloat16), ("16-mixed", torch.float32)]
)
def test_weights_in_the_format_of_their_training_are_loaded(tmp_path: Path, precision: str, kind: torch.dtype) -> None:
    model, file = torch.nn.Linear(2, 3), tmp_path / "weights"
    save_file({"weight": torch.ones(3, 2, dtype=kind), "bias": torch.zeros(3)}, file)
    load_weights(model, file, precision)
    assert model.weight.eq(1).all()
