"""A run directory or a folder of maps that was made to do harm is refused with a sentence, and nothing in it is run."""

import hashlib
import io
import itertools
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
from grids import covering

import nmt
from nmt.cli.compose import configuration
from nmt.commands.average import average
from nmt.commands.compare import compare
from nmt.commands.evaluate import evaluate
from nmt.commands.export_attention import export_attention
from nmt.commands.train import train
from nmt.config.job import Job
from nmt.config.keys import with_values
from nmt.config.trusted import check_nodes, check_storable, read_plain_yaml
from nmt.errors import Mistake
from nmt.maps.map_files import MapFolder

TARGETS = [
    "os.system",
    "builtins.eval",
    "nmt.runs.directory.os.system",
    "torch.hub.load",
    "torch.optim.os.system",
    "torch.optim.lr_scheduler.LambdaLR",
    "nmt.no",
    "nmt.decoding.workers._exit_with_parent",
    "nmt.decoding.workers.Workers._start",
    "nmt.attention.Attention",
    "nmt.models.norms.ScaleNorm",
    "x" * 100_000,
    5,
    ["nmt.models.Luong"],
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


def composed(*arguments: str) -> dict[str, Any]:
    return configuration("train", ["run_dir=none", *arguments])


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
    with pytest.raises(Mistake, match=r"is damaged, or is not a checkpoint of a training run"):
        average(job("average", run_dir="run", out="averaged", number=2))
    with pytest.raises(Mistake, match=r"last\.ckpt is not a checkpoint of a training run"):
        train(job("train", resume="true", trainer__max_steps=99))
    assert not (corpus_copy / "harm").exists()


PARTS = ["model", "search", "optimizer", "schedule", "logger"]


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: str(target)[:40])
@pytest.mark.parametrize("part", PARTS)
def test_no_foreign_class_may_be_stored(part: str, target: Any) -> None:
    node = {"_target_": target, "_args_": ["touch harm"]}
    with pytest.raises(Mistake, match=f"names .* at {part}.*, where only .* is allowed; it is not loaded"):
        check_nodes({**composed(), part: {"csv": node} if part == "logger" else node}, Path("config.yaml"))


@pytest.mark.parametrize(
    ("part", "target"),
    covering(itertools.product(PARTS, TARGETS), lambda row: (row[0], TARGETS.index(row[1])), pairs=False),
    ids=lambda part: str(part)[:40],
)
def test_no_configuration_of_a_run_makes_anything_foreign(
    trained: Path, corpus_copy: Path, job: Callable[..., Job], part: str, target: Any
) -> None:
    config = yaml.safe_load((trained / "config.yaml").read_text(encoding="utf-8"))
    node = {"_target_": target, "_args_": [f"touch {corpus_copy / 'harm'}"], "command": f"touch {corpus_copy / 'harm'}"}
    config[part] = {"csv": node} if part == "logger" else node
    (trained / "config.yaml").write_text(yaml.safe_dump(config))
    if part in ("model", "search"):
        refused(lambda: nmt.load(trained))
    with pytest.raises(Mistake, match=f"names .* at {part}.*, where only .* is allowed; it is not loaded") as error:
        train(job("train", resume="true", trainer__max_steps=99))
    assert len(str(error.value)) < 700
    assert not (corpus_copy / "harm").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ["model=luong", "encoder@model=lstmn", "decoder@model=lstmn"],
        ["model=transformer", "norm@model=scale_norm", "scorer@cross=gaussian", "normalizer@cross=sparsemax"],
        ["model=bahdanau", "context=hierarchical_encoder", "window=local_m"],
        ["context=hierarchical", "window=local_p", "search=sampling"],
        ["context=hierarchical_decoder", "schedule=cosine", "objective=simcut", "initializer=small", "optimizer=sgd"],
        ["context=concatenate", "schedule=plateau", "objective=r_drop", "initializer=uniform", "optimizer=adadelta"],
        ["logger=wandb", "scorer=location", "schedule=late_halving", "trainer.max_steps=9", "search.beam_size=2"],
        ["logger=mlflow", "experiment=luong2015_local_p"],
    ],
    ids=" ".join,
)
def test_every_choice_may_be_stored(arguments: list[str]) -> None:
    check_nodes(composed(*arguments), Path("config.yaml"))


def test_a_pretrained_encoder_may_be_stored() -> None:
    check_nodes(configuration("pretrain", ["run_dir=none", "norm@model=scale_norm"]), Path("config.yaml"))


SCHEDULE = {"_target_": "nmt.training.schedules.cosine", "_partial_": True, "warmup": 3, "floor": 0.1}


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("search.constraints", None, r"search\.constraints must be a group of settings, not 'null'"),
        ("search.constraints.max_length_ratio", "much", r"max_length_ratio must be a number, not 'much'"),
        ("schedule", SCHEDULE | {"steps": float("inf")}, r"schedule\.steps is inf; it must be a number, or null"),
        ("context.model", {"_target_": "nmt.models.Luong"}, r"where only nmt\.models\.DocumentModel is allowed"),
        ("../configs/model.norm", {"_target_": "os.getcwd"}, r"where only nmt\.models\.norms\.LayerNorm"),
        ("search.beams", 3, r"Unknown key 'search\.beams'\. Did you mean 'search\.beam_size'\?"),
        ("model.dim", [1], r"model\.dim must be a whole number, not '\[1\]'"),
        ("model.norm", "layer_norm", r"model\.norm must be a group of settings, not 'layer_norm'"),
        ("model.cross.window", 3, r"model\.cross\.window must be a group of settings"),
        ("model._partial_", 7, r"model\._partial_ must be true or false, not '7'"),
        ("logger.csv._partial_", 7, r"Unknown key 'logger\.csv\._partial_'"),
        ("logger.csv.prefix", "${oc.env:HOME}", r"holds '\$\{oc\.env:HOME\}', which is an unresolved interpolation"),
        ("model.dropout_at.attention", ["${oc.create:{_target_: os.getcwd}}"], "which is an unresolved interpolation"),
        ("search.constraints.max_length", [["${oc.env:HOME}"]], "which is an unresolved interpolation"),
        (
            "search.constraints.max_length",
            "???",
            r"holds '\?\?\?', which is an unresolved interpolation or a missing value",
        ),
        ("search", "${oc.env:HOME}", "which is an unresolved interpolation"),
        (
            "logger.comet",
            {"_target_": "lightning.pytorch.loggers.CometLogger"},
            r"CometLogger' at logger\.comet, where",
        ),
        ("callbacks.mine", {"_target_": "nmt.models.Luong"}, r"Luong' at callbacks\.mine, where no class is allowed"),
        (
            "model.norm._target_",
            "nmt.models.Luong",
            r"Luong' at model\.norm, where only nmt\.models\.norms\.LayerNorm,",
        ),
        ("trainer.mine", {"_target_": "os.getcwd"}, r"'os\.getcwd' at trainer\.mine, where no class is allowed"),
    ],
)
def test_a_stored_value_fits_its_place(key: str, value: Any, message: str) -> None:
    with pytest.raises(Mistake, match=message):
        check_nodes(with_values(composed(), {key: value}), Path("config.yaml"))


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


def test_a_class_that_the_user_puts_in_place_of_another_keeps_the_arguments_of_that_one() -> None:
    given = composed("optimizer._target_=torch.optim.Adam")
    stored = with_values(given, {"optimizer.lr": 0.5})
    check_nodes(stored, Path("config.yaml"), given=given)
    for changed in (with_values(stored, {"optimizer.more": 1}), with_values(stored, {"optimizer.fused": "yes"})):
        with pytest.raises(Mistake, match=r"optimizer\.(more|fused|weight_decay)"):
            check_nodes(changed, Path("config.yaml"), given=given)
    told = (
        r"Unknown key 'optimizer\.\w+'\..* If the run's own command has optimizer\._target_=torch\.optim\.Adam, repeat"
    )
    with pytest.raises(Mistake, match=told):
        check_nodes(stored, Path("config.yaml"), given=composed())
    with pytest.raises(
        Mistake, match=r"Unknown key 'optimizer\.\w+'"
    ) as loaded:  # by a command that takes no optimizer
        check_nodes(stored, Path("config.yaml"))
    assert "repeat" not in str(loaded.value)


def test_a_class_of_ones_own_is_to_be_repeated_but_a_stranger_does_not_choose_its_name() -> None:
    stored = with_values(composed(), {"schedule._target_": "evil.Schedule"})
    with pytest.raises(Mistake, match=r"If it is a class of your own, repeat schedule\._target_=CLASS, as in the"):
        check_nodes(stored, Path("config.yaml"), given=composed())


def test_a_key_that_a_stored_node_lacks_cannot_be_added_to_the_command() -> None:
    stored = composed()
    del stored["search"]["beam_size"]
    with pytest.raises(
        Mistake, match=r"search\.beam_size is missing\. Another version of nmt wrote it: train the run ag"
    ):
        check_nodes(stored, Path("config.yaml"))


@pytest.mark.parametrize("place", ["model:\n  more: ", "start_from: ", "filters:\n  max_tokens: ", "data:\n  train: "])
def test_a_list_of_a_billion_values_is_not_walked_through(tmp_path: Path, place: str) -> None:
    levels = "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12))
    (tmp_path / "config.yaml").write_text(f"a0: &a0 [x, x, x, x, x, x, x, x, x]\n{levels}{place}*a11\n")
    with pytest.raises(Mistake, match="has more than 10,000 values"):
        read_plain_yaml(tmp_path / "config.yaml")


@pytest.mark.parametrize(
    "more",
    [
        "!!pairs [a: {_target_: numpy.load, _args_: [x]}]",
        "!!omap [a: {_target_: numpy.load, _args_: [x]}]",
        "!!set {a, b}",
        "!!binary aGFybQ==",
        "&a [*a]",
        "2026-11-22",
        "2026-99-99",
        "!!bool maybe",
        "!!int ''",
        "!!timestamp x",
        "!!seq x",
        "!!map [a]",
        "!!python/name:os.system x",
        "=",
        "{<<: [{a: 1}]}",
        "{5: a}",
        "{[a]: b}",
    ],
)
def test_other_kinds_of_values_are_refused(tmp_path: Path, more: str) -> None:
    (tmp_path / "config.yaml").write_text(f"model:\n  more: {more}\n")
    with pytest.raises(Mistake, match=r"which no configuration has|more than 10,000 values"):
        read_plain_yaml(tmp_path / "config.yaml")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("9" * 5000, r"contains the number '9+\.\.\., which is larger than any setting allows"),
        ("0x" + "f" * 20, "which is larger than any setting allows"),
        (":".join(["9"] * 30), "which is larger than any setting allows"),
        ("1" + ":0" * 5000 + ".5", "which is larger than any setting allows"),
        ("%YAML 1." + "9" * 5000 + "\n---\na: 1", "is damaged: it is not YAML"),
        (r'"\UFFFFFFFF"', "is damaged: it is not YAML"),
        (r'"\ud800"', "holds a text with a character that no configuration has|is damaged: it is not YAML"),
        (r'"\0": 1', "holds a text with a character that no configuration has"),
        ("a: " + "[" * 60 + "]" * 60, "is nested more than 50 levels deep"),
        ("# " + "x" * 2**18, "has more than 256 KiB"),
    ],
    ids=lambda text: text[:20],
)
def test_a_value_that_python_cannot_hold_is_refused(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "config.yaml").write_text(content)
    with pytest.raises(Mistake, match=message) as error:
        read_plain_yaml(tmp_path / "config.yaml")
    assert len(str(error.value)) < 500 + len(str(tmp_path))


def test_an_alias_is_read(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("a: &a [1, 2.5, true, null, x]\nb: *a\n")
    assert read_plain_yaml(tmp_path / "config.yaml")["b"] == [1, 2.5, True, None, "x"]


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
    with zipfile.ZipFile(content, "w") as file, file.open("00001/cross.npy", "w") as array:
        if harm == "pickle":
            np.save(array, np.array([Harm(corpus_copy / "harm")], dtype=object), allow_pickle=True)
        else:
            np.lib.format.write_array_header_1_0(array, {"descr": "<f4", "fortran_order": False, "shape": (5 * 2**29,)})
    (maps / entry["file"]).write_bytes(content.getvalue())
    for described in manifest["sentences"]:
        described["sha256"] = hashlib.sha256(content.getvalue()).hexdigest()
    (maps / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    with pytest.raises(Mistake, match="is damaged: export the maps again"):
        list(MapFolder(maps).sentences())
    assert not (corpus_copy / "harm").exists()


def test_a_configuration_that_could_not_be_read_again_is_refused_before_training() -> None:
    """It may name as many corpora as a pattern matches."""
    check_storable({"data": {"train": [f"shards/{number}" for number in range(1000)]}})
    for names in ([f"{number}" for number in range(10_000)], [f"{'x' * 300}/{number}" for number in range(1000)]):
        with pytest.raises(
            Mistake, match=rf"^The configuration has lists with {len(names):,} entries, more .*: join the"
        ):
            check_storable({"data": {"train": names}})
    # Anything else that could not be read again is named.
    with pytest.raises(Mistake, match="holds a text with a character that no configuration has"):
        check_storable({"data": {"train": ["a\0b"]}})
