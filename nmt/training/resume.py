"""How a run resumes: with the stored configuration, from the last checkpoint."""

import copy
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from nmt.config.job import Job
from nmt.config.keys import value_at, with_values
from nmt.config.nodes import Config
from nmt.config.schema import NOT_STORED, LoopSettings, RunSettings, TrainSettings, validated
from nmt.config.trusted import FOR_RESUMING, check_targets
from nmt.data.corpus import check_files, corpus_hashes
from nmt.data.vocabulary import learned_tokenizers
from nmt.errors import Mistake
from nmt.files import cache_folder, check_unlocked
from nmt.models import Seq2Seq
from nmt.runs.directory import RunDirectory
from nmt.runs.load import LoadedRun
from nmt.runs.record import training_record
from nmt.training.buildable import check_buildable
from nmt.training.checkpoints import newest_whole
from nmt.training.machine import choose_machine, rank
from nmt.training.prepared import (
    ADAPTED,
    LENGTHS,
    MAY_CHANGE,
    Prepared,
    changed_command,
    check_boundaries,
    finished_run,
    initial_model,
    plain_corpora,
    prepare_data,
    reached_limits,
    start_weights,
)
from nmt.training.task import build_task
from nmt.training.validation import translation_validations

logger = logging.getLogger(__name__)

SettingsT = TypeVar("SettingsT", bound=LoopSettings)


def resume(job: Job[TrainSettings], run: RunDirectory, changes: Mapping[str, Any]) -> Prepared[RunSettings, Seq2Seq]:
    """Prepares a run to resume from its last checkpoint, or to start over if it has no checkpoint.

    Raises Mistake for invalid input, before the run directory is changed.
    """
    found = stored_run(job, run, changes, RunSettings)
    config, settings, metrics = found.config, found.settings, found.metrics
    check_buildable(settings)
    machine = choose_machine(settings.trainer)
    files = [*settings.data.train, *settings.data.held_out.values()]
    check_files(files, settings.direction)
    check_boundaries(settings)
    if rank() == 0:
        check_unlocked(run.path)
    mine = machine.processes * settings.trainer.accumulate_grad_batches
    config = same_steps(config, mine if changes else metrics.get("batches_a_step", mine), machine.processes)
    settings = validated(RunSettings, config)
    hashes = corpus_hashes(files, settings.direction)
    check_corpora(metrics.get("corpora", {}), hashes)

    cache = cache_folder(job.settings.cache_dir)
    corpora = plain_corpora(settings, cache)
    checkpoint = last_checkpoint(run, found.finished)
    # A checkpoint contains all weights, and the run that start_from names may no longer exist.
    start = None if checkpoint else finished_run(settings, run.path)
    if metrics:
        tokenizers = run.tokenizers(settings.direction, metrics)
    elif start is not None:
        tokenizers = start.tokenizers
    else:  # killed while writing its first files
        tokenizers = learned_tokenizers(corpora.train, settings.direction, settings.tokenizer, cache)
    model = initial_model(settings, tokenizers, start)
    data, max_steps = prepare_data(settings, corpora, tokenizers, model, machine.processes, cache)
    if found.finished:
        check_epochs_left(run.path, metrics, max_steps)
    record = {
        **training_record(settings, settings.direction, tokenizers, model, machine.processes, hashes),
        **start_weights(start, metrics),
        **resumed_command(job, found.stored, config, metrics),
    }
    return Prepared(
        run,
        config,
        settings,
        settings.direction,
        tokenizers,
        model,
        build_task(settings, model),
        translation_validations(LoadedRun(run, settings, tokenizers, model, model.device), data.validation),
        data,
        max_steps,
        checkpoint,
        machine.processes,
        record,
        is_new=False,
    )


@dataclass(frozen=True)
class Stored(Generic[SettingsT]):
    """What the directory of the run to resume contains."""

    config: Config
    """The run's configuration, with the changes from the command line and those that save memory."""
    settings: SettingsT
    """The same configuration, validated."""
    stored: Config
    """The configuration before those changes."""
    metrics: Config
    finished: bool


def stored_run(
    job: Job[Any], run: RunDirectory, changes: Mapping[str, Any], kind: type[SettingsT]
) -> Stored[SettingsT]:
    """Reads and checks the run; `kind` is the class of its settings.

    Raises Mistake if there is no run, and if it cannot be used or the command line changes a
    setting that must stay the same.
    """
    if not run.started:
        raise Mistake(f"There is no run to resume in {run.path}; start one without resume=true.")
    stored, metrics = run.config(), run.metrics()
    try:
        validated(kind, stored)
    except Mistake as error:
        raise Mistake(f"{run.path / 'config.yaml'} cannot be used: {error}") from error
    finished = metrics.get("finished", False) and run.weights.is_file()
    check_targets(stored, run.path / "config.yaml", FOR_RESUMING, given=job.config)
    config = resumed_config(job, stored, metrics, run.path)
    if finished:
        check_continues(stored, config, validated(kind, config), run.path, metrics)
    config = with_values(config, changes)
    return Stored(config, validated(kind, config), stored, metrics, finished)


def resumed_command(job: Job[Any], stored: Config, config: Config, metrics: Config) -> Config:
    """What metrics.json records of a resumed run: its command, and the requested values of the keys in ADAPTED."""
    return {
        "command": changed_command(metrics.get("command", job.command), stored, config),
        "asked": metrics.get("asked", {key: value_at(stored, key) for key in ADAPTED}),
    }


def resumed_config(job: Job[Any], stored: Config, metrics: Config, path: Path) -> Config:
    """The stored configuration with the values that the command line sets for keys in MAY_CHANGE.

    Raises Mistake if the command line changes any other key. `path` is the run directory, which a warning names.
    """
    asked = metrics.get("asked", {})
    config = copy.deepcopy(stored)
    for given, key in _given_keys(job, stored):
        value = value_at(job.config, key)
        if key.split(".")[0] in NOT_STORED or value == value_at(stored, key):
            continue
        # The run changed the value by itself, to save memory or to suit the number of processes or a small corpus.
        if key in asked and value == asked[key]:
            continue
        if key not in MAY_CHANGE:
            raise Mistake(
                f"{key} is {value}, but {value_at(stored, key)} in the run to resume; only "
                f"{', '.join(MAY_CHANGE)} may differ: leave out {given}=, or start a new run."
            )
        config = with_values(config, {key: value})
    # A schedule defined by the length of training keeps that length, so that the steps already done stay valid.
    decay = value_at(stored, "schedule.steps")
    before, now = (value_at(each, "trainer.max_steps") for each in (stored, config))
    # If the length is now shorter, steps_of_training warns.
    if decay is not None and before != now and (now is None or now >= decay):
        logger.warning(
            "trainer.max_steps is now %s, but the learning rate still decays over %s steps; for a different schedule, "
            "start a new run%s.",
            now,
            decay,
            f" with start_from={path}" if "start_from" in stored else "",
        )
    return config


def check_continues(before: Config, now: Config, settings: LoopSettings, path: Path, metrics: Config) -> None:
    """Raises Mistake if a finished run would end at once, because it has reached a limit or no limit has changed."""
    if reached := reached_limits(settings, metrics):
        raise Mistake(
            f"The run in {path} is finished and has reached {' and '.join(reached)}: raise every "
            "limit that it has reached to train it longer, or use overwrite=true instead of resume=true to start over."
        )
    if all(value_at(now, key) == value_at(before, key) for key in LENGTHS):
        raise Mistake(
            f"The run in {path} is finished: to train it longer, raise {', '.join(LENGTHS[:-1])} or "
            f"{LENGTHS[-1]}, or use overwrite=true instead of resume=true to start over."
        )


def check_epochs_left(path: Path, metrics: Config, max_steps: int) -> None:
    """Raises Mistake if a finished run has already done `max_steps`, the number of steps in all its epochs."""
    if metrics.get("steps", 0) >= max_steps:
        raise Mistake(
            f"The run in {path} is finished and has done all {max_steps} steps of its epochs: to train it longer, "
            "raise trainer.max_epochs or set it to null, or use overwrite=true instead of resume=true to start over."
        )


def last_checkpoint(run: RunDirectory, finished: bool) -> Path | None:
    """The checkpoint to resume from; None to start over. Raises Mistake if that would lose a finished run."""
    last = newest_whole(run.checkpoints)
    if last is None and finished:
        raise Mistake(
            f"The run in {run.path} is finished, and {run.checkpoints} has no last.ckpt to resume from: start "
            "a new run in another run_dir."
        )
    if last is None:
        logger.warning("There is no checkpoint in %s to resume from: training starts over.", run.checkpoints)
    return last


def same_steps(config: Config, batches: int, processes: int) -> Config:
    """The configuration, changed so that a step has `batches` batches in total over all `processes`.

    Raises Mistake if the batches of a step cannot be divided evenly among the processes.
    """
    if batches % processes:
        raise Mistake(
            f"A step of this run has {batches} batches, which cannot be divided evenly among {processes} processes: "
            f"resume with a number of processes that divides {batches}."
        )
    accumulate = batches // processes
    if accumulate != value_at(config, "trainer.accumulate_grad_batches"):
        logger.warning(
            "Resumed on %d devices with trainer.accumulate_grad_batches=%d: each step uses the same sentences as "
            "before, but dropout and the order of summation differ, so the result is not bit-identical.",
            processes,
            accumulate,
        )
    return with_values(config, {"trainer.accumulate_grad_batches": accumulate})


def check_corpora(before: Mapping[str, str], now: Mapping[str, str]) -> None:
    """Raises Mistake if the SHA-256 of a corpus file has changed since the run was started."""
    changed = [name for name, digest in now.items() if before.get(name, digest) != digest]
    if changed:
        raise Mistake(f"{changed[0]} has changed since the run was started; start a new run.")


def _given_keys(job: Job[Any], stored: Config) -> list[tuple[str, str]]:
    """Pairs each key that the command line sets with every key at or below it; `_target_` and `name` come first."""
    return [
        (given, leaf)
        for given in job.given
        for leaf in sorted(
            _ungrouped_keys(given, value_at(job.config, given), value_at(stored, given)),
            key=lambda leaf: leaf.rpartition(".")[2] not in ("_target_", "name"),
        )
    ]


def _ungrouped_keys(key: str, value: Any, other: Any) -> list[str]:
    """The dotted keys, at or below `key`, at which at least one of the two values is not a group."""
    if not (isinstance(value, dict) and isinstance(other, dict)):
        return [key]
    names = dict.fromkeys([*other, *value])
    return [leaf for name in names for leaf in _ungrouped_keys(f"{key}.{name}", value.get(name), other.get(name))]
