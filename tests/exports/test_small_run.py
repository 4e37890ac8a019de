"""Run directories with weights in 8 bits."""

import contextlib
import io
import math
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

import nmt
from nmt.commands.export import export
from nmt.commands.train import train
from nmt.config.job import Job
from nmt.errors import Mistake
from nmt.runs.load import load_run
from nmt.runs.weights import DamagedWeights, in_8_bits, read_weights

LINES = ["one two", "three four five", "six"]


@pytest.fixture(scope="module")
def exported(learned: Path, job: Callable[..., Job], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The learned run in 8 bits, which every test copies."""
    out, printed = tmp_path_factory.mktemp("exported") / "small", io.StringIO()
    with contextlib.chdir(learned), contextlib.redirect_stdout(printed):
        export(job("export", run_dir="run", format="run", out=str(out), quantization="int8"))
    assert "log-probabilities differ by at most" in printed.getvalue()
    return out


@pytest.fixture
def small(run: Path, exported: Path) -> Path:
    return Path(shutil.copytree(exported, "small"))


def test_rounding_moves_a_weight_by_at_most_half_a_step_of_its_row(tmp_path: Path) -> None:
    torch.manual_seed(1)
    weights = {"table": torch.randn(50, 7) * torch.logspace(-6, 3, 50)[:, None], "bias": torch.randn(7)}
    weights["table"][3] = 0
    save_file(in_8_bits(weights), tmp_path / "weights")
    stored, again = load_file(tmp_path / "weights"), read_weights(tmp_path / "weights")
    assert stored["table"].dtype == torch.int8
    assert again.keys() == weights.keys()
    assert again["bias"].equal(weights["bias"])
    step = weights["table"].abs().amax(dim=1, keepdim=True) / 127
    # Three roundings in float32 of numbers up to 127 steps: the scale, the quotient and the product.
    assert ((again["table"] - weights["table"]).abs() <= step * (0.5 + 3 * 127 * 2**-24)).all()
    assert again["table"][3].eq(0).all()


def test_rounding_twice_changes_nothing() -> None:
    torch.manual_seed(1)
    once = in_8_bits({"table": torch.randn(50, 7)})
    full = once["table"].float() * once["table.scales"][:, None]
    assert in_8_bits({"table": full})["table"].equal(once["table"])


def test_every_command_reads_it_as_the_run(run: Path, small: Path) -> None:
    sizes = [(folder / "model.safetensors").stat().st_size for folder in (run, small)]
    assert sizes[1] < 0.35 * sizes[0], "the tables of this tiny model have short rows, so scales take their share"
    assert {path.name for path in small.iterdir()} == {
        *("config.yaml", "export.json", "metrics.json", "model.safetensors", "source_words.txt", "tokenizer.model")
    }
    assert len({path.stat().st_mode for path in small.iterdir()}) == 1
    original, ours = nmt.load(run), nmt.load(small)
    assert ours.translate(LINES) == original.translate(LINES)
    assert ours.score(LINES, ["một", "hai", "ba"]) == pytest.approx(original.score(LINES, ["một", "hai", "ba"]), abs=1)
    assert isinstance(nmt.load(small, precision="int8").translate(LINES)[0], str)


def test_its_dictionary_goes_with_it(
    run: Path, job: Callable[..., Job], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """To a copy, but not to a run that starts from it; training again removes it."""
    (run / "dictionary.tsv").write_text("six\tone two\n", encoding="utf-8")
    copy = tmp_path / "copy"
    export(job("export", run_dir="run", format="run", out=str(copy), quantization="int8"))
    assert nmt.load(copy).translate(["six"]) == nmt.load(copy).translate(["one two"], verbatim=True)
    with caplog.at_level("INFO", "nmt"):
        train(job("train", start_from=str(copy), run_dir="tuned", trainer__max_steps=1))
    assert f"{copy / 'dictionary.tsv'} is not copied, because the new training text may teach its words" in caplog.text
    assert not Path("tuned/dictionary.tsv").exists()
    shutil.copy(copy / "dictionary.tsv", "tuned")
    train(job("train", run_dir="tuned", overwrite="true", trainer__max_steps=1))
    assert not Path("tuned/dictionary.tsv").exists()


def test_training_starts_from_it(small: Path, job: Callable[..., Job]) -> None:
    train(job("train", start_from=str(small), run_dir="tuned", trainer__max_steps=1, optimizer__lr=1e-9))
    before, after = (load_run(Path(name), "cpu").model.state_dict() for name in ("small", "tuned"))
    assert all(after[name].allclose(before[name], atol=1e-6) for name in before)


@pytest.mark.parametrize("name", ["output.weight.scales", "output.weight.scales.scales", "nothing.scales"])
def test_scales_that_fit_no_matrix_are_refused(small: Path, name: str) -> None:
    weights = load_file(small / "model.safetensors")
    assert "output.weight.scales" in weights
    save_file({**weights, name: torch.ones(3)}, small / "model.safetensors")
    with pytest.raises(Mistake, match="does not hold the weights of the model"):
        load_run(small, "cpu")


@pytest.mark.parametrize("scale", [math.nan, math.inf, -math.inf, 3e38])
def test_scales_that_make_no_finite_weight_are_refused(small: Path, scale: float) -> None:
    weights = load_file(small / "model.safetensors")
    weights["output.weight.scales"][1] = scale
    save_file(weights, small / "model.safetensors")
    with pytest.raises(DamagedWeights, match=r"holds weights that are NaN or infinite"):
        load_run(small, "cpu")


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.int8, torch.bool])
def test_scales_of_another_type_are_refused(small: Path, dtype: torch.dtype) -> None:
    weights = load_file(small / "model.safetensors")
    weights["output.weight.scales"] = weights["output.weight.scales"].to(dtype)
    save_file(weights, small / "model.safetensors")
    with pytest.raises(DamagedWeights, match=r"stores output\.weight\.scales as \w+, but trainer\.precision=32-true"):
        load_run(small, "cpu")


def test_a_matrix_in_8_bits_needs_its_scales(small: Path) -> None:
    weights = load_file(small / "model.safetensors")
    del weights["output.weight.scales"]
    save_file(weights, small / "model.safetensors")
    with pytest.raises(DamagedWeights, match=r"stores output\.weight as I8"):
        load_run(small, "cpu")


def test_a_full_disk_is_reported_as_such(
    run: Path, job: Callable[..., Job], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")

    monkeypatch.setattr("nmt.exports.small_run.save_file", full)
    with pytest.raises(OSError, match="No space left on device"):
        export(job("export", run_dir="run", format="run", out=str(tmp_path / "out"), quantization="int8"))
