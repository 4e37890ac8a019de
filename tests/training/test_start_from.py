"""A training that begins with the weights and tokenizers of a finished run."""

import hashlib
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from jobs import job_of
from safetensors.torch import load_file, save_file

from nmt.cli.arguments import for_hydra
from nmt.cli.compose import configuration
from nmt.cli.compose import job_of as composed_job
from nmt.cli.settings_class import settings_class
from nmt.commands.train import train
from nmt.config.job import Job
from nmt.errors import Mistake
from nmt.runs.directory import RunDirectory
from nmt.training.preparation import prepare
from nmt.training.translation import Translation

# So small a rate that the weights stay what they were.
STILL = {"optimizer__lr": 1e-20, "start_from": "run", "run_dir": "new", "data__test": "null"}


def weights(run: Path) -> dict[str, torch.Tensor]:
    return load_file(run / "model.safetensors")


def unchanged(found: dict[str, torch.Tensor], expected: dict[str, torch.Tensor]) -> None:
    # At most five steps of Adam, each of at most 4 lr (Kingma & Ba 2015, section 2.1), which float32 mostly drops.
    torch.testing.assert_close(found, expected, rtol=0, atol=5 * 4 * 1e-20)


def test_it_begins_with_the_weights_and_the_tokenizer_of_the_run(
    job: Callable[..., Job], trained: Path, corpus_copy: Path
) -> None:
    # Another corpus, whose own tokenizer would be another one.
    train(job("train", **STILL, data__train="[valid]", filters__drop_duplicates="false", trainer__max_steps=2))
    new = corpus_copy / "new"
    assert (new / "tokenizer.model").read_bytes() == (trained / "tokenizer.model").read_bytes()
    unchanged(weights(new), weights(trained))


def test_it_goes_on_after_that_run_is_gone(job: Callable[..., Job], trained: Path, corpus_copy: Path) -> None:
    before, digest = weights(trained), hashlib.sha256((trained / "model.safetensors").read_bytes()).hexdigest()
    train(job("train", **STILL, trainer__max_steps=4))
    shutil.rmtree(trained)
    train(job("train", run_dir="new", resume="true", trainer__max_steps=5))
    unchanged(weights(corpus_copy / "new"), before)
    # What it began with can be told even now.
    assert json.loads((corpus_copy / "new" / "metrics.json").read_text())["start_weights"] == digest


def test_stopped_before_its_first_checkpoint_it_begins_with_that_run_again(
    job: Callable[..., Job], trained: Path, corpus_copy: Path
) -> None:
    train(job("train", **STILL, trainer__max_steps=4))
    shutil.rmtree(corpus_copy / "new" / "checkpoints")
    (corpus_copy / "new" / "model.safetensors").unlink()
    metrics = corpus_copy / "new" / "metrics.json"
    metrics.write_text(metrics.read_text().replace('"finished": true', '"finished": false'))
    train(job("train", run_dir="new", resume="true"))
    unchanged(weights(corpus_copy / "new"), weights(trained))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"model__dim": 14},
            r"start_from=run has a different model or different tokenizers: .*, or use its settings: model\.dim=12\.$",
        ),
        ({"model__num_heads": 3}, r"use its settings: model\.num_heads=2\.$"),
        (
            {"scorer": "dot"},
            r"leave out experiment=, model=, scorer=.* of the run, or use its settings: .*scorer=scaled_dot",
        ),
        ({"tokenizer": "unigram"}, r"use its settings: tokenizer\.kind=bpe\.$"),
        ({"tokenizer__size": 90}, r"use its settings: tokenizer\.size=293\.$"),
        (
            {"direction": "vi-en"},
            "start_from=run translates en-vi, not vi-en: set direction=en-vi, or choose another run",
        ),
        ({"run_dir": "run", "overwrite": "true"}, "start_from=run is also the run_dir, which would be overwritten"),
        ({"start_from": "loop"}, "start_from=loop: there is no such folder; use the run_dir of a finished run"),
        ({"start_from": "none"}, "start_from=none: there is no such folder; use the run_dir of a finished run"),
    ],
)
def test_a_run_that_does_not_fit_is_refused(
    job: Callable[..., Job], trained: Path, corpus_copy: Path, changes: dict[str, Any], message: str
) -> None:
    Path("loop").symlink_to("loop")
    with pytest.raises(Mistake, match=message):
        train(job("train", **{**STILL, **changes}))
    assert not (corpus_copy / "new").exists()
    assert (trained / "model.safetensors").is_file()


def started(arguments: list[str]) -> None:
    """Raises what a command that starts from the run is refused for."""
    command = ["start_from=run", "run_dir=new", *arguments]
    job = composed_job("train", for_hydra(command, settings_class("train")), command)
    Translation().new(job, RunDirectory(Path("new")), {})


@pytest.mark.usefixtures("trained")
def test_an_experiment_for_another_model_goes_with_no_settings_of_the_run() -> None:
    with pytest.raises(Mistake, match=r"leave out experiment=, .* and tokenizer= to use those of the run\.$"):
        started(["experiment=envi_luong"])


@pytest.mark.usefixtures("trained")
@pytest.mark.parametrize(
    "choices",
    [
        ["model=luong"],
        ["model=luong", "scorer=dot", "window=local_p", "window.half_width=3", "encoder@model=lstmn"],
        pytest.param(["model=bahdanau", "normalizer=sparsemax"], marks=pytest.mark.soak),
        pytest.param(["model=transformer"], marks=pytest.mark.soak),
        pytest.param(["scorer=location", "tokenizer=unigram"], marks=pytest.mark.soak),
        ["scorer@cross=concat", "cross.scorer.hidden_dim=5", "normalizer@decoder_self=sparsemax"],
        ["norm@model=scale_norm", "model.fix_norm=true", "model.num_layers=3"],
        pytest.param(["window=local_m"], marks=pytest.mark.soak),
        ["experiment=envi_transformer_small"],
    ],
)
def test_the_settings_that_the_error_gives_are_accepted(choices: list[str]) -> None:
    """In place of those on the command line that they contradict."""
    with pytest.raises(Mistake, match="has a different model or different tokenizers") as refused:
        started(choices)
    remedy = str(refused.value).partition("use its settings: ")[2].removesuffix(".").split()
    assert remedy
    replaced = [setting.partition("=")[0] for setting in remedy]
    # A choice also replaces the values of the former one, and another model has other groups.
    replaced += [re.sub(r"(.*)@(.*)", r"\2.\1", key) for key in replaced]
    gone = [key if "." in key else f"{key}." for key in replaced]
    kept = [
        setting
        for setting in choices
        if setting.partition("=")[0] not in replaced
        and not setting.startswith(tuple(gone))
        and not ("model" in replaced and "@" in setting)
    ]
    started([*kept, *remedy])


def test_where_it_begins_with_that_run_again_the_record_is_of_its_present_weights(
    job: Callable[..., Job], trained: Path, corpus_copy: Path
) -> None:
    train(job("train", **STILL, trainer__max_steps=4))
    new = corpus_copy / "new"
    shutil.rmtree(new / "checkpoints")
    (new / "model.safetensors").unlink()
    record = json.loads((new / "metrics.json").read_text()) | {"finished": False}
    (new / "metrics.json").write_text(json.dumps(record))
    changed = {name: value + 1 for name, value in weights(trained).items()}
    save_file(changed, trained / "model.safetensors")
    train(job("train", run_dir="new", resume="true"))
    found = json.loads((new / "metrics.json").read_text())["start_weights"]
    assert found == hashlib.sha256((trained / "model.safetensors").read_bytes()).hexdigest() != record["start_weights"]


def test_a_run_with_unit_embeddings_hands_them_on(job: Callable[..., Job], corpus_copy: Path) -> None:
    train(job("train", run_dir="first", model__fix_norm="true", trainer__max_steps=2))
    train(job("train", **{**STILL, "start_from": "first"}, model__fix_norm="true", trainer__max_steps=2))
    unchanged(weights(corpus_copy / "new"), weights(corpus_copy / "first"))


def test_another_initializer_gives_another_training(job: Callable[..., Job], corpus_copy: Path) -> None:
    for name in ("default", "small"):
        train(job("train", run_dir=name, initializer=name, optimizer__lr=1e-20, trainer__max_steps=2))
    made, small = (weights(corpus_copy / name) for name in ("default", "small"))
    changed = {name for name in made if not made[name].equal(small[name])}
    assert "decoder.0.cross.query.weight" in changed
    assert "target_embedding.weight" not in changed


def test_the_model_and_the_tokenizers_of_the_run_are_taken_over(job: Callable[..., Job], corpus_copy: Path) -> None:
    """A command that says nothing of the model gets that of the run, with what it changes: dropout."""
    first = {"scorer": "additive", "model__num_layers": 2, "tokenizer__size": 295, "trainer__max_steps": 2}
    train(job("train", run_dir="first", **first))
    train(job("train", **{**STILL, "start_from": "first"}, model__dropout=0.4, trainer__max_steps=2))
    config = yaml.safe_load((corpus_copy / "new" / "config.yaml").read_text(encoding="utf-8"))
    assert config["model"]["num_layers"] == 2
    assert config["model"]["dropout"] == 0.4
    assert config["scorer"]["_target_"].endswith("Additive")
    assert config["tokenizer"]["size"] == 295
    unchanged(weights(corpus_copy / "new"), weights(corpus_copy / "first"))


def test_a_schedule_and_an_initializer_have_the_width_of_the_run(job: Callable[..., Job], corpus_copy: Path) -> None:
    train(job("train", run_dir="first", model__dim=24, trainer__max_steps=2))
    given = {"schedule": "noam", "initializer": "small", "trainer__max_steps": 2}
    train(job("train", run_dir="new", start_from="first", **given))
    config = yaml.safe_load((corpus_copy / "new" / "config.yaml").read_text(encoding="utf-8"))
    assert (config["model"]["dim"], config["schedule"]["dim"], config["initializer"]["dim"]) == (24, 24, 24)
    train(job("train", run_dir="new", start_from="first", resume="auto", **given))  # finished: it prints the scores
    assert yaml.safe_load((corpus_copy / "new" / "config.yaml").read_text(encoding="utf-8")) == config


@pytest.mark.parametrize(
    ("data", "given", "warned"),
    [
        ("sample", (), ""),
        ("envi", (), "schedule, number of steps, vocabulary size"),
        ("envi", ("schedule", "optimizer.lr"), "number of steps, vocabulary size"),
        ("envi", ("schedule", "trainer.max_steps", "tokenizer.size"), ""),
    ],
)
def test_a_recipe_for_another_corpus_is_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, data: str, given: tuple[str, ...], warned: str
) -> None:
    (tmp_path / "config.yaml").touch()
    composed = configuration("train", [f"data.name={data}"])
    job = job_of("train", composed, ("data", *given))
    with pytest.raises(Mistake):
        prepare(job, RunDirectory(tmp_path), Translation(), resumes=False, changes={})
    assert ("come from experiment=sample" in caplog.text) == bool(warned)
    assert f"the embedded corpus: {warned}" in caplog.text or not warned
