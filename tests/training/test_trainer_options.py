"""All of Lightning's trainer options are under trainer, except those that the project owns."""

import inspect
from typing import Any
from unittest.mock import MagicMock

import pytest
import yaml
from lightning import Trainer

from nmt.config.nodes import CONFIGS
from nmt.config.schema import TrainerSettings
from nmt.training import machine

OWNED = {
    "logger": "the group logger chooses it",
    "callbacks": "the group callbacks adds to ours",
    "default_root_dir": "run_dir is the place of a run",
    "enable_checkpointing": "checkpoints.keep",
    "enable_progress_bar": "nmt.training.loop chooses by the terminal",
    "enable_model_summary": "the run prints its own size",
    "enable_autolog_hparams": "config.yaml holds them",
    "model_registry": "uploads to a service",
    "val_check_interval": "validation.every",
    "check_val_every_n_epoch": "validation counts steps: to Lightning training is one epoch",
    "num_sanity_val_steps": "a validation before the first step would count as one",
    "min_epochs": "to Lightning training is one epoch",
    "reload_dataloaders_every_n_epochs": "to Lightning training is one epoch",
    "limit_train_batches": "would repeat the same first batches for ever",
    "overfit_batches": "would repeat the same first batches for ever",
    "fast_dev_run": "turns off checkpoints and loggers, without which a run directory is not complete",
    "barebones": "turns off checkpoints and loggers, without which a run directory is not complete",
    "use_distributed_sampler": "nmt.data.plan shares the steps out",
    "sync_batchnorm": "no model has batch normalisation",
    "plugins": "are objects, which no command line can write; precision and strategy choose them",
    "limit_val_batches": "only a whole validation tells which weights are best",
    "min_steps": "validation.patience",
    "deterministic": "the same seed gives the same weights anyway",
    "benchmark": "no model has convolutions",
    "detect_anomaly": "a callback can switch it on",
    "inference_mode": "is used for validation",
    "profiler": "python -m scripts.bench.benchmark train --profile",
    "limit_test_batches": "Trainer.test is not used: nmt.evaluate scores",
    "limit_predict_batches": "Trainer.predict is not used: nmt.translate searches",
}


def options() -> dict[str, Any]:
    return yaml.safe_load((CONFIGS / "trainer" / "default.yaml").read_text(encoding="utf-8"))


def test_every_parameter_of_lightning_is_an_option_or_ours() -> None:
    known = set(inspect.signature(Trainer.__init__).parameters) - {"self"}
    # So that another version of Lightning passes too: what it does not have yet needs no option.
    assert known - set(options()) - set(OWNED) == set()
    assert set(options()) - known == set()
    assert set(options()) & set(OWNED) == set()


def settings(**changes: Any) -> TrainerSettings:
    return TrainerSettings(**{**options(), **changes})


def test_the_options_of_the_machine_reach_lightning_and_the_others_are_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lightning refuses to accumulate and clip if the steps are ours (nmt.training.step), as the limits are."""
    trainer = MagicMock(spec=Trainer)
    recorded = MagicMock(return_value=trainer)
    monkeypatch.setattr(machine, "Trainer", recorded)
    machine.build_trainer(settings(devices=3))
    ours = ("max_steps", "max_epochs", "max_time", "accumulate_grad_batches", "gradient_clip_val")
    expected = {**options(), "devices": 3, "max_epochs": -1}
    for name in (*ours, "gradient_clip_algorithm"):
        expected.pop(name, None)
    assert recorded.call_args.kwargs == {**expected, "max_epochs": -1}


def test_the_options_as_they_are_make_a_trainer() -> None:
    trainer = machine.build_trainer(settings(accelerator="cpu"), logger=False, enable_checkpointing=False)
    assert trainer.log_every_n_steps == options()["log_every_n_steps"]
