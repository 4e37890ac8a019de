"""The loggers and callbacks that a run's user chooses."""

import csv
import importlib.util
import json
import logging
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import lightning
import pytest
import torch
import yaml
from lightning.pytorch.loggers import Logger

from nmt.cli.compose import configuration
from nmt.commands.pretrain import pretrain
from nmt.commands.train import train
from nmt.config.job import Job
from nmt.config.keys import with_values
from nmt.config.schema import TrainSettings, validated
from nmt.errors import CheckFailed, Mistake
from nmt.training.extensions import build_loggers, check_extensions, check_stored_loggers

SHORT = {
    "run_dir": "new",
    "trainer__max_steps": 4,
    "validation__every": 2,
    "trainer__log_every_n_steps": 1,
    "data__test": "null",
}


class Listener(lightning.Callback):
    """Remembers, across a resume, after how many steps a batch ended, and how many batches a step had."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.steps: list[tuple[int, int]] = []

    def on_train_batch_end(self, trainer: lightning.Trainer, task: Any, outputs: Any, batch: Any, _: int) -> None:
        self.steps.append((trainer.global_step, len(batch)))

    def state_dict(self) -> dict[str, Any]:
        return {"name": self.name, "steps": self.steps}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.steps = list(state_dict["steps"])


def test_a_csv_log_has_a_row_for_every_step_and_resuming_begins_a_new_one(
    job: Callable[..., Job], corpus_copy: Path
) -> None:
    train(job("train", **SHORT, logger="csv", trainer__accumulate_grad_batches=2))
    train(job("train", run_dir="new", resume="true", trainer__max_steps=6))
    logs = corpus_copy / "new" / "logs"
    assert sorted(path.relative_to(logs).as_posix() for path in logs.rglob("*.*")) == [
        "version_0/metrics.csv",
        "version_1/metrics.csv",
    ]
    steps = []
    for version in ("version_0", "version_1"):
        with (logs / version / "metrics.csv").open(encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        steps.append([int(row["step"]) for row in rows if row["train_loss"]])
        assert any(row["valid_loss"] for row in rows)
    assert steps == [[0, 1, 2, 3], [4, 5]]


def test_without_a_logger_there_are_no_logs(job: Callable[..., Job], corpus_copy: Path) -> None:
    train(job("train", **SHORT, logger="none"))
    assert not (corpus_copy / "new" / "logs").exists()


@pytest.mark.parametrize("logger", ["wandb", "mlflow"])
@pytest.mark.parametrize(("command", "function"), [("train", train), ("pretrain", pretrain)])
def test_a_missing_package_is_named_before_anything_is_written(
    job: Callable[..., Job],
    corpus_copy: Path,
    monkeypatch: pytest.MonkeyPatch,
    logger: str,
    command: str,
    function: Callable[[Job], None],
) -> None:
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        "nmt.training.extensions.find_spec", lambda name: None if name in ("wandb", "mlflow") else find_spec(name)
    )
    message = rf"logger={logger} needs the package {logger}, .*; run pip install .* '\.\[{logger}\]' first, or use"
    with pytest.raises(Mistake, match=message):
        function(job(command, run_dir="new", logger=logger))
    assert not (corpus_copy / "new").exists()


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("_args_", [7], r"^logger\.csv: the key _args_ is not allowed in a node; remove it\.$"),
        ("_partial_", 7, r"^logger\.csv\._partial_ is 7; it must be true or false\.$"),
        ("prefx", "x", r"^Unknown argument of lightning\.pytorch\.loggers\.CSVLogger 'prefx'\. Did you mean 'prefix'"),
    ],
)
def test_a_wrong_key_of_a_logger_is_reported_before_the_corpora_are_read(key: str, value: Any, message: str) -> None:
    config = with_values(configuration("train", ["run_dir=new", "logger=csv"]), {f"logger.csv.{key}": value})
    with pytest.raises(Mistake, match=message):
        check_extensions(validated(TrainSettings, config))


def test_a_callback_of_the_user_s_own_sees_every_step_and_is_resumed(
    job: Callable[..., Job], corpus_copy: Path
) -> None:
    own = {"+callbacks__mine": f"{{_target_: {__name__}.Listener, name: x}}"}
    train(job("train", **SHORT, **own, trainer__accumulate_grad_batches=2))
    train(job("train", run_dir="new", resume="true", trainer__max_steps=6, **own))
    checkpoint = torch.load(corpus_copy / "new" / "checkpoints" / "last.ckpt", weights_only=True)
    assert checkpoint["callbacks"]["Listener"] == {"name": "x", "steps": [(step, 2) for step in range(1, 7)]}


class Stopper(lightning.Callback):
    """Stops training after the second step."""

    def on_train_batch_end(self, trainer: lightning.Trainer, task: Any, outputs: Any, batch: Any, _: int) -> None:
        trainer.should_stop = trainer.global_step >= 2


@pytest.mark.parametrize("epochs", ["null", "9"])
def test_a_callback_may_end_training(
    job: Callable[..., Job], corpus_copy: Path, caplog: pytest.LogCaptureFixture, epochs: str
) -> None:
    caplog.set_level(logging.INFO, "nmt")
    own = {"+callbacks__mine": f"{{_target_: {__name__}.Stopper}}"}
    train(job("train", **SHORT, **own, trainer__max_epochs=epochs))
    assert "Training ended at step 2: a callback stopped it" in caplog.text


class Remote(Logger):
    """Stands for a logger that writes to a server; remembers how it was made."""

    made: ClassVar[list[dict[str, Any]]] = []

    def __init__(self, **arguments: Any) -> None:
        super().__init__()
        self.made.append(arguments)

    name = "remote"
    version = 0

    def log_metrics(self, metrics: dict[str, float], step: int | None = None) -> None:
        pass

    def log_hyperparams(self, params: Any, *args: Any, **kwargs: Any) -> None:
        pass


@pytest.fixture
def remote(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The arguments of the loggers that were made for Weights & Biases and MLflow."""
    monkeypatch.setattr("nmt.training.extensions.find_spec", lambda _: True)
    monkeypatch.setattr("lightning.pytorch.loggers.WandbLogger", Remote)
    monkeypatch.setattr("lightning.pytorch.loggers.MLFlowLogger", Remote)
    monkeypatch.setattr(Remote, "made", [])
    return Remote.made


def test_a_logger_has_the_name_of_its_run_wherever_that_is(
    job: Callable[..., Job], corpus_copy: Path, remote: list[dict[str, Any]]
) -> None:
    train(job("train", **SHORT, logger="wandb"))
    (corpus_copy / "new").rename(corpus_copy / "moved")
    train(job("train", run_dir="moved", resume="true", trainer__max_steps=6))
    assert [arguments["name"] for arguments in remote] == ["new", "moved"]
    assert [arguments["save_dir"] for arguments in remote] == ["new/logs/version_0", "moved/logs/version_0"]


def test_the_address_of_a_server_is_not_stored(
    job: Callable[..., Job], corpus_copy: Path, remote: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "https://me:secret@example.com")
    train(job("train", **SHORT, logger="mlflow"))
    monkeypatch.delenv("MLFLOW_TRACKING_URI")
    train(job("train", run_dir="new", resume="true", trainer__max_steps=6))
    assert [(arguments["run_name"], arguments["tracking_uri"]) for arguments in remote] == [
        ("new", "https://me:secret@example.com"),
        ("new", "sqlite:///mlflow.db"),
    ]
    files = [path for path in (corpus_copy / "new").rglob("*") if path.is_file()]
    assert files
    assert not any(b"secret" in path.read_bytes() for path in files)


@pytest.mark.usefixtures("remote")
def test_a_password_in_an_address_is_refused(job: Callable[..., Job], corpus_copy: Path) -> None:
    address = {"logger": "mlflow", "logger__mlflow__tracking_uri": "https://me:secret@example.com"}
    with pytest.raises(Mistake, match=r"set the environment variable MLFLOW_TRACKING_URI instead"):
        train(job("train", **SHORT, **address))
    assert not (corpus_copy / "new").exists()


def test_a_resumed_run_may_have_other_loggers(
    job: Callable[..., Job], corpus_copy: Path, remote: list[dict[str, Any]]
) -> None:
    """Its command stays, because loggers do not change its result."""
    train(job("train", **SHORT, logger="csv"))
    other = {"logger": "wandb", "logger__wandb__project": "mine"}
    train(job("train", run_dir="new", resume="true", trainer__max_steps=6, **other))
    assert [arguments["project"] for arguments in remote] == ["mine"]
    config = yaml.safe_load((corpus_copy / "new" / "config.yaml").read_text(encoding="utf-8"))
    assert list(config["logger"]) == ["wandb"]
    metrics = json.loads((corpus_copy / "new" / "metrics.json").read_text(encoding="utf-8"))
    assert "logger" not in metrics["command"]
    train(job("train", run_dir="new", resume="true", trainer__max_steps=8, logger="none"))
    assert len(remote) == 1


@pytest.mark.parametrize(
    ("key", "value"),
    [("name", "../../../elsewhere"), ("version", "{out}/a")],
)
def test_a_logger_of_a_run_writes_below_the_run_alone(
    job: Callable[..., Job], corpus_copy: Path, key: str, value: str
) -> None:
    """Whoever made the run may have written its configuration; what the user writes is checked once it is built."""
    train(job("train", **SHORT, logger="csv"))
    file, text = corpus_copy / "new" / "config.yaml", value.format(out=corpus_copy / "elsewhere")
    config = yaml.safe_load(file.read_text(encoding="utf-8"))
    node = {"_target_": "lightning.pytorch.loggers.TensorBoardLogger", "name": "", "version": "", key: text}
    file.write_text(yaml.safe_dump({**config, "logger": {"tensorboard": node}}), encoding="utf-8")
    with pytest.raises(
        Mistake, match=rf"^new/config\.yaml sets logger\.tensorboard\.{key} to '{re.escape(text)}', out"
    ):
        train(job("train", run_dir="new", resume="true", trainer__max_steps=6))
    for written in (node, {**node, key: "", "sub_dir": str(corpus_copy / "elsewhere")}):
        with pytest.raises(
            Mistake, match=r"^logger\.tensorboard would write to .*, outside .*new/logs/version_1: leave"
        ):
            build_loggers({"tensorboard": written}, corpus_copy / "new", corpus_copy / "new" / "logs")
    for address in ("sqlite:////tmp/x.db", "file:/tmp/x", "$HOME/x"):
        with pytest.raises(
            Mistake, match=r"sets logger\.mlflow\.tracking_uri to '.*', outside the run directory: give"
        ):
            check_stored_loggers({"mlflow": {"tracking_uri": address}}, file)
    check_stored_loggers({"mlflow": {"tracking_uri": "https://example.com", "experiment_name": "vi: en"}}, file)
    assert not (corpus_copy / "elsewhere").exists()
    train(job("train", run_dir="new", resume="true", trainer__max_steps=6, logger="csv"))


class Refused(Exception):  # noqa: N818
    """Stands for an error of a logger's package."""


def refuses(*args: Any, **kwargs: Any) -> None:
    raise Refused("No API key for https://me:secret@example.com\n[SQL: SELECT 1]")


@pytest.mark.parametrize("method", ["__init__", "log_metrics"])
@pytest.mark.parametrize(
    ("choice", "module", "name"),
    [("wandb", "wandb.errors", "Error"), ("mlflow", "mlflow.exceptions", "MlflowException")],
)
@pytest.mark.usefixtures("remote")
def test_an_error_of_a_logger_s_package_is_one_sentence(
    job: Callable[..., Job],
    corpus_copy: Path,
    monkeypatch: pytest.MonkeyPatch,
    choice: str,
    module: str,
    name: str,
    method: str,
) -> None:
    monkeypatch.setitem(sys.modules, module, SimpleNamespace(**{name: Refused}))
    monkeypatch.setattr(Remote, method, refuses)
    message = (
        rf"^logger={choice} failed \(No API key for https://example\.com\): check logger\.{choice} and its server, "
        r"or set logger=csv\. There is no checkpoint yet: resume=true starts over\.$"
    )
    with pytest.raises(CheckFailed, match=message):
        train(job("train", **SHORT, logger=choice))


def test_another_error_in_a_logger_is_a_bug(
    job: Callable[..., Job], corpus_copy: Path, monkeypatch: pytest.MonkeyPatch, remote: list[dict[str, Any]]
) -> None:
    monkeypatch.setattr(Remote, "log_metrics", refuses)
    with pytest.raises(Refused):
        train(job("train", **SHORT, logger="wandb"))


def test_a_folder_of_logs_that_cannot_be_written_to_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights & Biases would write to the folder of temporary files instead."""
    (tmp_path / "logs").mkdir()
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != "logs")
    loggers = configuration("train", ["run_dir=new", "logger=csv"])["logger"]
    with pytest.raises(Mistake, match=r"^The folder of the logs is .*version_0, but .*logs cannot be written to"):
        build_loggers(loggers, tmp_path, tmp_path / "logs")


def test_what_is_no_callback_is_refused(job: Callable[..., Job]) -> None:
    with pytest.raises(Mistake, match=r"callbacks\.mine is a OrderedDict, which is not a Lightning callback: set"):
        train(job("train", run_dir="new", **{"+callbacks__mine": "{_target_: collections.OrderedDict}"}))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"+callbacks__bar": "{_target_: lightning.pytorch.callbacks.RichProgressBar}"},
            r"^Lightning refuses the callbacks of this command \(Trainer was configured with `enable_progress",
        ),
        (
            {"+callbacks__clock": "{_target_: lightning.pytorch.callbacks.Timer, duration: null}"},
            r"^Lightning refuses the callbacks of this command \(.*: leave out the callback that it names\.$",
        ),
        (
            {"logger": "csv", "logger__csv__name": "/elsewhere"},
            r"^logger\.csv\.name is '/elsewhere', outside the folder of the run's logs: leave it out, or make it",
        ),
    ],
)
def test_a_wrong_callback_or_logger_is_refused_before_a_run_is_replaced(
    job: Callable[..., Job], settings: dict[str, str], message: str
) -> None:
    with pytest.raises(Mistake, match=message):
        check_extensions(job("train", run_dir="new", **settings).settings)


class Keeper(lightning.Callback):
    """Has a state that a checkpoint cannot give back."""

    def state_dict(self) -> dict[str, Any]:
        return {"folder": Path("x")}


def test_a_state_that_no_checkpoint_can_give_back_ends_training_at_its_first_checkpoint(
    job: Callable[..., Job], corpus_copy: Path
) -> None:
    with pytest.raises(
        CheckFailed, match=r"^The state of the callback Keeper contains more than tensors, .*, and start over with over"
    ):
        train(job("train", **SHORT, **{"+callbacks__mine": f"{{_target_: {__name__}.Keeper}}"}))


@pytest.mark.parametrize("group", ["callbacks", "logger"])
def test_what_is_no_group_of_settings_is_neither_a_logger_nor_a_callback(group: str) -> None:
    config = configuration("train", ["run_dir=new"])
    for value in (None, "x", [1]):
        with pytest.raises(Mistake, match=rf"{group}\.mine must be a group of settings, not '"):
            validated(TrainSettings, with_values(config, {f"{group}.mine": value}))


@pytest.mark.parametrize("choice", ["csv", "tensorboard"])
def test_a_logger_may_be_named_by_a_number(tmp_path: Path, choice: str) -> None:
    loggers = configuration("train", ["run_dir=new", f"logger={choice}", f"logger.{choice}.name=7"])["logger"]
    [made] = build_loggers(loggers, tmp_path, tmp_path / "logs")
    assert Path(made.log_dir).parts[-2:] == ("version_0", "7")
