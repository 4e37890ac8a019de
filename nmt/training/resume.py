"""Which configuration a training runs with: the composed one, or the stored one of the run that it resumes."""

import copy
import logging
import os
import shlex
from pathlib import Path
from typing import Any

from nmt.config.job import Job
from nmt.config.keys import NOTHING, value_at
from nmt.config.nodes import Config
from nmt.config.trusted import TRAINED, check_targets
from nmt.files import check_folder, check_writable
from nmt.runs.directory import RunDirectory
from nmt.training.checkpoints import newest_whole
from nmt.training.settings import Settings, completed

logger = logging.getLogger(__name__)

LENGTHS = ("trainer.max_steps", "trainer.max_epochs", "trainer.max_time", "validation.patience")
# Where to train: steps are shared out among the processes.
MACHINE = ("trainer.devices", "trainer.num_nodes", "trainer.strategy", "trainer.accelerator")
_MAY_CHANGE = (*LENGTHS, *MACHINE, "max_skipped_steps")
_BATCHES = ("batching.batch_tokens", "trainer.accumulate_grad_batches")
# They say where to run and not what.
_NOT_PART = ("run_dir", "resume", "overwrite", "cache_dir")


def run_directory(job: Job) -> RunDirectory:
    """The folder that a training job writes to. Raises ValueError where it, or cache_dir, can be no folder."""
    path = Path(str(job.config["run_dir"]) if job.sweep_dir is None else os.path.relpath(job.sweep_dir))
    check_writable("run_dir", path)
    check_folder("cache_dir", job.config["cache_dir"])
    return RunDirectory(path)


def new_config(job: Job) -> Config:
    """The configuration that a new run stores."""
    return {key: value for key, value in job.config.items() if key not in _NOT_PART}


def resumed_config(job: Job, run: RunDirectory) -> Config:
    """The stored configuration with the lengths of training and the machine that the command line gives.

    Raises FileNotFoundError when there is no run to resume, ValueError when the command line sets anything else to
    another value, asks for `overwrite` as well, or when the run is finished and would not be trained any longer.
    """
    if job.config["overwrite"]:
        raise ValueError("resume=true goes on with a run and overwrite=true deletes it: give one of them.")
    if not run.started:
        raise FileNotFoundError(f"There is no run to resume in {run.path}; start one without resume=true.")
    stored = run.config()
    check_targets(stored, run.path / "config.yaml", TRAINED, given=job.config)
    before, stored = stored, completed(stored)
    asked = run.metrics().get("asked", {})
    config = copy.deepcopy(stored)
    for given, key in _given_keys(job, stored):
        value = value_at(job.config, key)
        if key.split(".")[0] in _NOT_PART or value == value_at(stored, key):
            continue
        # A group that is named again may have keys that it had not; one that there was not has those of `completed`.
        if key not in job.given and value_at(before, key, NOTHING) is NOTHING and key.split(".")[0] in before:
            continue
        # What the run itself has changed: for less memory, or another number of processes.
        if key in asked and value == asked[key]:
            continue
        if key not in _MAY_CHANGE:
            raise ValueError(
                f"{key} is {value}, but {value_at(stored, key)} in the run that is resumed; only "
                f"{', '.join(_MAY_CHANGE)} may differ: leave out {given}=, or start a new run."
            )
        *section, name = key.split(".")
        (config[section[0]] if section else config)[name] = value
    if run.finished:
        _check_goes_on(stored, config, run)
    _warn_of_schedule(stored, config)
    return config


def check_epochs_left(run: RunDirectory, max_steps: int) -> None:
    """Raises ValueError when a finished run has done `max_steps`, those of all its epochs."""
    if run.finished and run.metrics().get("steps", 0) >= max_steps:
        raise ValueError(
            f"The run in {run.path} is finished, and has done the {max_steps} steps of its epochs: give a larger "
            "trainer.max_epochs, or null, to train it longer, or overwrite=true instead of resume=true to begin again."
        )


def last_checkpoint(run: RunDirectory) -> Path | None:
    """What a run goes on from; None where it begins again. Raises ValueError where that would lose a finished one."""
    last = newest_whole(run.checkpoints)
    if last is None and run.finished:
        raise ValueError(
            f"The run in {run.path} is finished, and {run.checkpoints} has no last.ckpt to go on from: train another "
            "one in another run_dir."
        )
    if last is None:
        logger.warning("There is no checkpoint in %s to go on from: the training begins again.", run.checkpoints)
    return last


def same_steps(config: Config, batches: int, processes: int) -> Config:
    """The configuration with which so many processes train steps of `batches` batches, all processes together.

    Raises ValueError when the batches of a step cannot be shared out evenly.
    """
    if batches % processes:
        raise ValueError(
            f"A step of this run has {batches} batches, which {processes} processes cannot share out: resume with a "
            "number of them that divides it."
        )
    accumulate = batches // processes
    if accumulate != config["trainer"]["accumulate_grad_batches"]:
        logger.warning(
            "Resumed on %d devices, with trainer.accumulate_grad_batches=%d: steps have the same sentences, but "
            "dropout and the order of sums differ, so the result is not the same to the last bit.",
            processes,
            accumulate,
        )
    return config | {"trainer": config["trainer"] | {"accumulate_grad_batches": accumulate}}


def _check_goes_on(before: Config, now: Config, run: RunDirectory) -> None:
    """Raises ValueError when a finished run would end at once, because it has reached a limit."""
    if reached := Settings(now).reached(run.metrics()):
        raise ValueError(
            f"The run in {run.path} is finished and has reached {' and '.join(reached)}: give more to train it longer, "
            "or overwrite=true instead of resume=true to begin again."
        )
    if all(value_at(now, key) == value_at(before, key) for key in LENGTHS):
        raise ValueError(
            f"The run in {run.path} is finished: to train it longer give more of {', '.join(LENGTHS[:-1])} or "
            f"{LENGTHS[-1]}, or overwrite=true instead of resume=true to begin again."
        )


def _warn_of_schedule(before: Config, now: Config) -> None:
    """A schedule in shares of the training keeps its length, so that what was trained already stays as it was."""
    steps, lengths = value_at(now, "schedule.steps"), [config["trainer"]["max_steps"] for config in (before, now)]
    if steps is not None and lengths[0] != lengths[1]:
        logger.warning(
            "trainer.max_steps is %s now, but the learning rate falls along %s steps, as the run began; for another "
            "course give start_from=RUN to a new run.",
            lengths[1],
            steps,
        )


def check_corpora(before: dict[str, str], now: dict[str, str]) -> None:
    """Raises ValueError when a corpus file has another SHA-256 than when the run was started."""
    changed = [name for name, digest in now.items() if before.get(name, digest) != digest]
    if changed:
        raise ValueError(f"{changed[0]} has changed since the run was started; start a new run.")


def changed_command(command: str, before: Config, after: Config) -> str:
    """The command line that gives the same result at once: the run's own with the lengths and batches that changed."""
    changed = {
        key: value_at(after, key) for key in (*_MAY_CHANGE, *_BATCHES) if value_at(after, key) != value_at(before, key)
    }
    kept = [word for word in shlex.split(command) if word.lstrip("+").split("=")[0] not in changed]
    given = [f"{key}={'null' if value is None else value}" for key, value in changed.items()]
    # A schedule in shares of the training keeps those that it began with.
    if "trainer.max_steps" in changed and (steps := value_at(after, "schedule.steps")) is not None:
        kept = [word for word in kept if not word.startswith("schedule.steps=")]
        given.append(f"schedule.steps={steps}")
    return shlex.join([*kept, *given])


def batch_settings(config: Config) -> Config:
    """Under their dotted keys, the settings that a run may change by itself."""
    return {key: value_at(config, key) for key in _BATCHES}


def _given_keys(job: Job, stored: Config) -> list[tuple[str, str]]:
    """What the command line gives, and each key below it; first those that name a whole group, such as a model."""
    return [
        (given, leaf)
        for given in job.given
        for leaf in sorted(
            _ungrouped_keys(given, value_at(job.config, given), value_at(stored, given)),
            key=lambda leaf: leaf.rpartition(".")[2] not in ("_target_", "name"),
        )
    ]


def _ungrouped_keys(key: str, value: Any, other: Any) -> list[str]:
    """The dotted keys below one that are no groups in both values: a chosen group is given key by key."""
    if not (isinstance(value, dict) and isinstance(other, dict)):
        return [key]
    names = dict.fromkeys([*other, *value])
    return [leaf for name in names for leaf in _ungrouped_keys(f"{key}.{name}", value.get(name), other.get(name))]
