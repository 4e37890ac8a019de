"""A run directory or a folder of maps that was made to do harm is refused with a sentence, and nothing in it is run."""

import hashlib
import io
import json
import pickle
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml

import nmt
from nmt.commands.average import average
from nmt.commands.compare import compare
from nmt.commands.evaluate import evaluate
from nmt.commands.export_attention import export_attention
from nmt.commands.train import train
from nmt.config.job import Job
from nmt.config.nodes import CONFIGS
from nmt.config.trusted import FOR_RESUMING, check_targets
from nmt.errors import Mistake
from nmt.maps.map_files import MapFolder

TARGETS = [
    "os.system",
    "builtins.eval",
    "nmt.runs.directory.os.system",
    "torch.hub.load",
    "torch.optim.os.system",
    "nmt.no",
]


class Harm:
    """A pickle that makes a file when it is loaded."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.mark,)


def refused(action: Callable[[], Any]) -> None:
    """By one sentence, and at once."""
    with pytest.raises(Mistake) as error:
        action()
    assert len(str(error.value)) < 500
    assert str(error.value)


@pytest.fixture
def reads(job: Callable[..., Job]) -> list[Callable[[], Any]]:
    """Everything that loads a run directory without training it."""
    return [
        lambda: nmt.load("run"),
        lambda: evaluate(job("evaluate", run_dir="run")),
        lambda: export_attention(job("export_attention", run_dir="run", input="test.en", out="m")),
        lambda: compare(job("compare", run_dirs="[run]")),
    ]


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.model", "config.yaml", "metrics.json"])
def test_a_pickle_in_any_place_is_no_run(
    trained: Path, corpus_copy: Path, name: str, reads: list[Callable[[], Any]]
) -> None:
    (trained / name).write_bytes(pickle.dumps(Harm(corpus_copy / "harm")))
    for read in reads:
        refused(read)
    assert not (corpus_copy / "harm").exists()


def test_a_pickle_in_place_of_a_checkpoint_is_not_loaded(
    trained: Path, corpus_copy: Path, job: Callable[..., Job]
) -> None:
    for name in ("last.ckpt", *(path.name for path in (trained / "checkpoints").iterdir())):
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w") as file:
            file.writestr("archive/data.pkl", pickle.dumps({"state_dict": Harm(corpus_copy / "harm")}, protocol=2))
            file.writestr("archive/version", "3\n")
            file.writestr("archive/byteorder", "little")
        (trained / "checkpoints" / name).write_bytes(content.getvalue())
    with pytest.raises(Mistake, match=r"is damaged or not a checkpoint of a training run"):
        average(job("average", run_dir="run", out="averaged", number=2))
    with pytest.raises(Mistake, match=r"last\.ckpt is not a checkpoint of a training run"):
        train(job("train", resume="true", trainer__max_steps=99))
    assert not (corpus_copy / "harm").exists()


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("part", ["model", "search", "optimizer", "schedule", "logger"])
def test_no_configuration_of_a_run_makes_anything_foreign(
    trained: Path, corpus_copy: Path, job: Callable[..., Job], part: str, target: str
) -> None:
    config = yaml.safe_load((trained / "config.yaml").read_text(encoding="utf-8"))
    node = {"_target_": target, "_args_": [f"touch {corpus_copy / 'harm'}"], "command": f"touch {corpus_copy / 'harm'}"}
    config[part] = {"csv": node} if part == "logger" else node
    (trained / "config.yaml").write_text(yaml.safe_dump(config))
    if part in ("model", "search"):
        refused(lambda: nmt.load(trained))
    with pytest.raises(Mistake, match=f"names '{target}', which does not belong to nmt.models"):
        train(job("train", resume="true", trainer__max_steps=99))
    assert not (corpus_copy / "harm").exists()


def test_the_classes_of_our_loggers_and_no_others_are_made() -> None:
    files = (CONFIGS / "logger").glob("*.yaml")
    nodes = [node for file in files for node in yaml.safe_load(file.read_text(encoding="utf-8")).values()]
    ours = {node["_target_"] for node in nodes if isinstance(node, dict)}
    assert len(ours) == 4
    assert {name for name in FOR_RESUMING if name.startswith("lightning")} == ours
    check_targets([{"_target_": name} for name in ours], Path("config.yaml"), FOR_RESUMING)
    with pytest.raises(Mistake, match=r"names 'lightning.pytorch.loggers.CometLogger', which does not belong"):
        check_targets({"_target_": "lightning.pytorch.loggers.CometLogger"}, Path("config.yaml"), FOR_RESUMING)


class GivenOptimizer(torch.optim.SGD):
    """An optimizer of the user's own, with a bug."""

    def __init__(self, *_: Any, **__: Any) -> None:
        raise KeyError("made")


def test_what_the_user_gives_may_be_made(trained: Path, job: Callable[..., Job]) -> None:
    config = yaml.safe_load((trained / "config.yaml").read_text(encoding="utf-8"))
    config["optimizer"]["_target_"] = target = f"{__name__}.GivenOptimizer"
    (trained / "config.yaml").write_text(yaml.safe_dump(config))
    with pytest.raises(KeyError, match="made"):
        train(job("train", resume="true", trainer__max_steps=99, optimizer___target_=target))


def test_a_list_of_a_billion_values_is_not_walked_through(trained: Path) -> None:
    config = (trained / "config.yaml").read_text(encoding="utf-8")
    bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 9)
    )
    (trained / "config.yaml").write_text(bomb + config.replace("model:\n", "model:\n  more: *a8\n", 1))
    with pytest.raises(Mistake, match="has more than 10,000 values"):
        nmt.load(trained)


@pytest.mark.parametrize(
    "more",
    [
        "!!pairs [a: {_target_: numpy.load, _args_: [x]}]",
        "!!omap [a: {_target_: numpy.load, _args_: [x]}]",
        "!!set {a, b}",
        "!!binary aGFybQ==",
        "&a [*a]",
        "2026-11-22",
    ],
)
def test_other_kinds_of_values_are_refused(trained: Path, more: str) -> None:
    config = (trained / "config.yaml").read_text(encoding="utf-8")
    (trained / "config.yaml").write_text(config.replace("model:\n", f"model:\n  more: {more}\n", 1))
    with pytest.raises(Mistake, match=r"which no configuration has|more than 10,000 values"):
        nmt.load(trained)


@pytest.mark.parametrize("deep", ["[" * 100_000, '{"a":' * 100_000])
@pytest.mark.parametrize("name", ["config.yaml", "metrics.json"])
def test_nesting_without_end_is_refused(trained: Path, name: str, deep: str) -> None:
    (trained / name).write_text(deep)
    refused(lambda: nmt.load(trained))


def test_a_header_that_claims_ten_gigabytes_is_refused(trained: Path) -> None:
    weights = trained / "model.safetensors"
    weights.write_bytes(struct.pack("<Q", 10 * 2**30) + weights.read_bytes()[8:])
    refused(lambda: nmt.load(trained))
    header = json.dumps({"w": {"dtype": "F32", "shape": [5 * 2**29], "data_offsets": [0, 10 * 2**30]}}).encode()
    weights.write_bytes(struct.pack("<Q", len(header)) + header + b"\0" * 64)
    refused(lambda: nmt.load(trained))


@pytest.mark.parametrize("language", ["../../etc/passwd", "en-../vi", "/tmp/x-y"])
def test_a_direction_leads_out_of_no_folder(trained: Path, language: str) -> None:
    config = yaml.safe_load((trained / "config.yaml").read_text(encoding="utf-8"))
    config["direction"] = language
    (trained / "config.yaml").write_text(yaml.safe_dump(config))
    with pytest.raises(Mistake, match="Unknown direction"):
        nmt.load(trained)


@pytest.fixture
def maps(trained: Path, job: Callable[..., Job]) -> Path:
    export_attention(job("export_attention", run_dir="run", input="test.en", out="maps", formats="[]"))
    return Path("maps")


@pytest.mark.parametrize("name", ["../run/model.safetensors", "/etc/passwd", "..", "a\0b", "CON/../x.npz"])
def test_a_manifest_leads_out_of_no_folder(maps: Path, name: str) -> None:
    manifest = json.loads((maps / "manifest.json").read_text(encoding="utf-8"))
    manifest["sentences"][0]["file"] = name
    (maps / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    with pytest.raises(Mistake, match="which is not a file of maps"):
        list(MapFolder(maps).sentences())


@pytest.mark.parametrize("harm", ["pickle", "claim"])
def test_maps_with_a_pickle_or_a_claim_of_ten_gigabytes_are_refused(maps: Path, corpus_copy: Path, harm: str) -> None:
    manifest = json.loads((maps / "manifest.json").read_text(encoding="utf-8"))
    entry = manifest["sentences"][0]
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as file, file.open("cross.npy", "w") as array:
        if harm == "pickle":
            np.save(array, np.array([Harm(corpus_copy / "harm")], dtype=object), allow_pickle=True)
        else:
            np.lib.format.write_array_header_1_0(array, {"descr": "<f4", "fortran_order": False, "shape": (5 * 2**29,)})
    (maps / entry["file"]).write_bytes(content.getvalue())
    entry["sha256"] = hashlib.sha256(content.getvalue()).hexdigest()
    (maps / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    with pytest.raises(Mistake, match="is damaged: export the maps again"):
        list(MapFolder(maps).sentences())
    assert not (corpus_copy / "harm").exists()
