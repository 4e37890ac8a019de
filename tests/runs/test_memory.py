"""A model is compared with the memory and with its file before it is allocated."""

import resource
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import yaml
from safetensors.torch import save_model
from torch import nn

import nmt
from nmt.config.keys import with_values
from nmt.errors import CheckFailed, Mistake
from nmt.models.embeddings import with_rows_of_length
from nmt.runs.load import build_model
from nmt.runs.memory import largest_memory, require_memory
from nmt.runs.weights import header_matches


def tied(width: int = 3, *, unit: bool = False) -> nn.Module:
    embedding, output = nn.Embedding(5, width), nn.Linear(width, 5, bias=False)
    output.weight = embedding.weight
    if unit:
        with_rows_of_length(embedding, output)
    return nn.ModuleList([embedding, output, nn.LSTM(width, width), nn.BatchNorm1d(width)])


@pytest.mark.parametrize("unit", [False, True])
def test_the_header_of_its_own_file_fits_a_model(tmp_path: Path, unit: bool) -> None:
    save_model(tied(unit=unit), str(tmp_path / "w"))
    with torch.device("meta"):
        assert header_matches(tied(unit=unit), tmp_path / "w")


@pytest.mark.parametrize(
    "other", [lambda: tied(4), lambda: nn.ModuleList([tied(), nn.Linear(2, 2)]), lambda: nn.Linear(2, 2)]
)
def test_the_header_of_another_file_does_not_match(tmp_path: Path, other: Callable[[], nn.Module]) -> None:
    save_model(tied(), str(tmp_path / "w"))
    with torch.device("meta"):
        assert not header_matches(other(), tmp_path / "w")
    (tmp_path / "w").write_bytes(b"no header")
    assert not header_matches(tied(), tmp_path / "w")


def test_a_file_with_a_terabyte_of_holes_is_not_mapped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "w"
    save_model(tied(), str(file))
    opened = []
    monkeypatch.setattr("nmt.runs.weights.safe_open", lambda *_, **__: opened.append(file))
    with file.open("r+b") as stream:
        stream.truncate(2**40)
    assert not header_matches(tied(), file)
    assert not opened


@pytest.mark.parametrize("allocates", ["safe_open", "safetensors.torch.load_file", "check_finite"])
@pytest.mark.parametrize(
    "error", [MemoryError(), RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried")]
)
def test_a_file_that_does_not_fit_into_the_memory_is_not_called_damaged(
    trained: Path, monkeypatch: pytest.MonkeyPatch, allocates: str, error: Exception
) -> None:
    def full(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(f"nmt.runs.weights.{allocates}", full)
    with pytest.raises(
        CheckFailed, match=r"Out of memory while reading the [\d,]+ bytes of .*model\.safetensors: raise"
    ):
        nmt.load(trained)


def test_a_model_that_does_not_fit_into_the_memory_is_not_called_damaged(
    trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def built(*given: object) -> nn.Module:
        if torch.get_default_device().type == "cpu":
            torch.empty(1 << 62, dtype=torch.uint8)
        return build_model(*given)

    monkeypatch.setattr("nmt.runs.load.build_model", built)
    with pytest.raises(CheckFailed, match=r"Out of memory while reading the [\d,]+ bytes of .*model\.safetensors"):
        nmt.load(trained)


def test_a_model_that_is_larger_than_the_memory_is_not_made() -> None:
    with pytest.raises(
        Mistake,
        match=r"^The model has 1,099,511,627,776 parameters, which need 4,096 GiB, but at most .* GiB can be used",
    ):
        require_memory(nn.Linear(2**20, 2**20, bias=False, device="meta"))
    require_memory(nn.Linear(2, 2))


def test_the_memory_is_the_lowest_limit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    monkeypatch.setattr(resource, "getrlimit", lambda _: unlimited)
    monkeypatch.setattr("nmt.runs.memory._CONTAINER", (tmp_path / "v2", tmp_path / "v1"))
    machine = largest_memory()
    assert machine > 2**28
    (tmp_path / "v2").write_text("max\n")
    assert largest_memory() == machine
    (tmp_path / "v2").write_text("12345\n")
    assert largest_memory() == 12345
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1234, 5678))
    assert largest_memory() == 1234


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model.dim": 600_000}, r"model\.safetensors does not hold the weights of the model that .*config\.yaml"),
        ({"model.num_layers": 100}, r"model\.safetensors does not hold the weights of the model that .*config\.yaml"),
        (
            {"model.num_layers": 1_000_000},
            r"does not describe a model .*num_layers is 1000000; it must be at most 1,000",
        ),
    ],
)
def test_a_run_that_describes_a_huge_model_is_refused_at_once(
    trained: Path, changes: dict[str, int], message: str
) -> None:
    config = yaml.safe_load((trained / "config.yaml").read_text(encoding="utf-8"))
    (trained / "config.yaml").write_text(yaml.safe_dump(with_values(config, changes)), encoding="utf-8")
    with pytest.raises(Mistake, match=message):
        nmt.load(trained)
