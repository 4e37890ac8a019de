"""nmt.average: from the checkpoints of a finished run to a run directory like any other."""

import errno
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from jobs import job_of
from safetensors.torch import load_file

import nmt
from nmt.cli.compose import configuration
from nmt.commands.average import average
from nmt.commands.compare import compare
from nmt.commands.train import train
from nmt.config.job import Job
from nmt.errors import Mistake


@pytest.fixture(scope="module")
def several(session_corpus: Path, tiny: Callable[..., list[str]]) -> Path:
    """A finished run with three best and two recent checkpoints."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(session_corpus)
        torch.set_num_threads(1)
        overrides = tiny(trainer__max_steps=9, validation__every=2, checkpoints__recent=2, run_dir="several")
        train(job_of("train", configuration("train", overrides), command="python -m nmt.train THE COMMAND"))
    return session_corpus / "several"


def goodness(file: Path) -> tuple[float, int]:
    """Minus the validation loss of a checkpoint, and its step."""
    found = torch.load(file, weights_only=True)
    [state] = [state for name, state in found["callbacks"].items() if name.startswith("BestCheckpoints")]
    return -float(state["current_score"]), found["global_step"]


def job(run: Path, out: Path, **changes: Any) -> Job:
    config = {**configuration("average", []), "run_dir": str(run), "out": str(out), "device": "cpu", **changes}
    return job_of("average", config, command="python -m nmt.average THE COMMAND")


@pytest.mark.parametrize(("kind", "number", "expected"), [("best", None, 3), ("recent", 2, 2), ("best", 2, 2)])
def test_an_averaged_run_is_a_run_directory(
    several: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, number: int | None, expected: int
) -> None:
    monkeypatch.chdir(several.parent)
    (several / "dictionary.tsv").write_text("six\tone two\n", encoding="utf-8")
    average(job(several, tmp_path / "mean", checkpoints=kind, number=number))
    metrics = json.loads((tmp_path / "mean" / "metrics.json").read_text(encoding="utf-8"))
    assert len(metrics["averaged"]) == expected
    assert all(name.startswith(kind) for name in metrics["averaged"])
    assert metrics["averaged_from"] == "python -m nmt.train THE COMMAND"
    words = "source_words.txt"
    assert (tmp_path / "mean" / words).read_bytes() == (several / words).read_bytes()
    assert (tmp_path / "mean" / "dictionary.tsv").read_text(encoding="utf-8") == "six\tone two\n"
    if kind == "best":
        best = sorted(several.glob("checkpoints/best-*.ckpt"), key=goodness)[-expected:]
        assert {file.name for file in best} == set(metrics["averaged"])
    states = [
        torch.load(several / "checkpoints" / name, weights_only=True)["state_dict"] for name in metrics["averaged"]
    ]
    for name, tensor in load_file(tmp_path / "mean" / "model.safetensors").items():
        mean = torch.stack([state[f"model.{name}"].double() for state in states]).mean(dim=0)
        # A mean in float64, whose sum has errors of 1e-16, and one rounding to float32.
        torch.testing.assert_close(tensor.double(), mean, rtol=torch.finfo(torch.float32).eps, atol=1e-15)
    assert len(nmt.load(tmp_path / "mean", device="cpu").translate(["one two.", "three"])) == 2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"number": 9},
            r"has 3 best checkpoints, but averaging needs 9: train longer, .* a larger checkpoints\.keep",
        ),
        (
            {"checkpoints": "recent", "number": 3},
            r"has 2 recent checkpoints, but averaging needs 3: .* larger checkpoints\.recent",
        ),
    ],
)
def test_what_cannot_be_averaged_is_refused(
    several: Path, tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(Mistake, match=message):
        average(job(several, tmp_path / "mean", **changes))
    assert not (tmp_path / "mean").exists()


def test_an_averaged_run_is_no_seed_of_the_run_it_is_made_of(
    several: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(several.parent)
    average(job(several, tmp_path / "mean"))
    capsys.readouterr()
    config = {**configuration("compare", []), "run_dirs": [str(several), str(tmp_path / "mean")], "device": "cpu"}
    compare(job_of("compare", {**config, "out": str(tmp_path / "out")}))
    table = [line.split("|")[1:-1] for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
    assert [cell.strip() for cell in table[0][:3]] == ["run", "averaged", "BLEU"]
    assert [row[1].strip() for row in table[2:4]] == ["", "3"]


@pytest.mark.parametrize("out", [".", "..", "../several"])
def test_the_run_itself_is_never_overwritten(several: Path, out: str) -> None:
    with pytest.raises(Mistake, match="which is or contains the run to average; choose another folder"):
        average(job(several, several / out, overwrite=True))
    assert (several / "model.safetensors").is_file()


@pytest.mark.parametrize("name", [".", "checkpoints/.."])
def test_the_new_run_is_beside_a_run_that_is_named_by_dots(
    several: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(several)
    config = {**configuration("average", []), "run_dir": name, "device": "cpu"}
    average(job_of("average", config, command="python -m nmt.average"))
    assert (several.with_name("several_average") / "model.safetensors").is_file()
    shutil.rmtree(several.with_name("several_average"))


def test_an_unfinished_run_in_out_cannot_be_resumed(several: Path, tmp_path: Path) -> None:
    shutil.copytree(several, tmp_path / "mean", ignore=shutil.ignore_patterns("model.safetensors"))
    with pytest.raises(Mistake, match=r"mean holds an unfinished run; choose another out, or set overwrite=true"):
        average(job(several, tmp_path / "mean"))


def test_a_run_that_cannot_be_written_leaves_nothing(
    several: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the same command would be refused when the disk has room again."""

    def fill_disk(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("nmt.commands.average.save_weights", fill_disk)
    with pytest.raises(OSError, match="No space left"):
        average(job(several, tmp_path / "mean"))
    assert not [*(tmp_path / "mean").glob("[!.]*")]


def test_a_link_to_itself_is_no_output(several: Path, tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(Mistake, match="loop is a symbolic link that leads back to itself; choose another folder"):
        average(job(several, tmp_path / "loop"))


def test_a_run_is_overwritten_only_on_request(several: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(several.parent)
    average(job(several, tmp_path / "mean"))
    with pytest.raises(Mistake, match="holds a finished run"):
        average(job(several, tmp_path / "mean"))
    average(job(several, tmp_path / "mean", overwrite=True))


def test_missing_checkpoints_are_named_with_what_to_do(several: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(several, tmp_path / "copy")
    for file in (copy / "checkpoints").glob("recent-*.ckpt"):
        file.unlink()
    with pytest.raises(Mistake, match=r"has no recent checkpoints: train with checkpoints\.recent=5, or use check"):
        average(job(copy, tmp_path / "mean", checkpoints="recent"))
    shutil.rmtree(copy / "checkpoints")
    with pytest.raises(Mistake, match=r"copy has no checkpoints, .*: name a run that .* with checkpoints\.keep=5"):
        average(job(copy, tmp_path / "mean"))
