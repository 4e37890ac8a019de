"""What a stored run keeps when it is resumed: its configuration, the batches of a step, its corpora, its checkpoint."""

import copy
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nmt.config.job import Job
from nmt.config.keys import value_at, with_values
from nmt.config.nodes import Config
from nmt.config.schema import NOT_STORED, LoopSettings, validated
from nmt.config.trusted import check_nodes
from nmt.errors import Mistake
from nmt.ranks import rank
from nmt.runs.directory import RunDirectory
from nmt.runs.record import print_run
from nmt.training.checkpoints import newest_whole
from nmt.training.extensions import check_stored_loggers
from nmt.training.limits import LIMITS, reached_limits
from nmt.training.origin import COMPUTED, LOGGER, MAY_CHANGE, ConfigOrigin, SettingsT

logger = logging.getLogger(__name__)


class AlreadyFinished(Exception):  # noqa: N818
    """The run to resume is finished, and the command does not ask for more. The message says how to train longer."""


@contextmanager
def printing_if_finished(run: RunDirectory) -> Iterator[None]:
    """If AlreadyFinished is raised inside the block, prints the run and its scores instead.

    A loop that repeats the command until it succeeds ends here.
    """
    try:
        yield
    except AlreadyFinished as finished:
        if rank() == 0:
            logger.info("%s", finished)
            print_run(run)


def stored_run(
    job: Job[Any], run: RunDirectory, changes: Mapping[str, Any], settings_class: type[SettingsT]
) -> ConfigOrigin[SettingsT]:
    """The stored configuration of a run, with what the command line may change and with `changes`, which save memory.

    Raises Mistake if there is no run, if it cannot be used, or if the command line changes a setting that must stay
    the same, and AlreadyFinished if nothing is left to do.
    """
    if not run.started:
        raise Mistake(f"There is no run to resume in {run.path}; start one without resume=true.")
    run.check_links(training=True)
    stored, metrics = run.config(), run.metrics()
    check_nodes(stored, run.path / "config.yaml", given=job.config)
    try:
        validated(settings_class, stored)
    except Mistake as error:
        raise Mistake(f"{run.path / 'config.yaml'} cannot be used: {error}") from error
    finished = metrics.get("finished", False) and run.weights.is_file()
    if not any(key.split(".")[0] == LOGGER for key in job.given):
        check_stored_loggers(stored["logger"], run.path / "config.yaml")
    config = resumed_config(job, stored, metrics, run.path)
    if finished:
        check_continues(stored, config, validated(settings_class, config), run.path, metrics)
    config = with_values(config, changes)
    return ConfigOrigin(config, validated(settings_class, config), original=stored, metrics=metrics, finished=finished)


def resumed_config(job: Job[Any], stored: Config, metrics: Config, path: Path) -> Config:
    """The stored configuration with the values that the command line sets for keys in MAY_CHANGE.

    Raises Mistake if the command line changes any other key. `path` is the run directory, which a warning names.
    """
    asked = metrics.get("asked", {})
    config = copy.deepcopy(stored)
    if "experiment" in job.given:
        check_experiment(job, stored, asked)
    for given, key in _given_keys(job, stored):
        value = value_at(job.config, key)
        if key.split(".")[0] in NOT_STORED or value == value_at(stored, key):
            continue
        # The run changed the value by itself, to save memory or to suit the number of processes or a small corpus.
        if key in asked and value == asked[key]:
            continue
        # The command names the schedule, not this value of it: the run keeps the value that its steps were made with.
        if key in COMPUTED and key != given:
            continue
        if key not in MAY_CHANGE:
            raise Mistake(
                f"{key} is {value}, but {value_at(stored, key)} in the run to resume; only "
                f"{', '.join(MAY_CHANGE)} may differ: leave out {given}=, or start a new run."
            )
        config = with_values(config, {key: value})
    # A schedule defined by the length of training keeps that length, so that the steps already done stay valid.
    decay = value_at(stored, "schedule.steps")
    before, now = value_at(stored, "trainer.max_steps"), value_at(config, "trainer.max_steps")
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


def check_experiment(job: Job[Any], stored: Config, asked: Config) -> None:
    """Raises Mistake if a command with experiment= is for another model or corpus than the run to resume.

    Logs a warning if others of its settings differ: the run may have been started with settings besides those of the
    experiment, and keeps them. `asked` are those that it changed by itself.
    """
    given = set(job.given)
    if "trainer.max_steps" in given:
        given.add("schedule.steps")  # which follows it, and keeps its former value; see resumed_config
    differing = [
        key
        for name, value in stored.items()
        for key in _ungrouped_keys(name, job.config.get(name), value)
        if value_at(job.config, key) not in (value_at(stored, key), asked.get(key, value_at(stored, key)))
        and not any(f"{key}.".startswith(f"{other}.") for other in given)
    ]
    for key in ("model._target_", "data.name"):
        if key in differing:
            raise Mistake(
                f"With experiment=, this command has {key}={value_at(job.config, key)}, but the run to resume has "
                f"{value_at(stored, key)}: leave out experiment=, or repeat the settings that the run was started with."
            )
    if differing:
        more = f" and {len(differing) - 3} other settings" if len(differing) > 3 else ""
        logger.warning(
            "With experiment=, this command differs from the run to resume in %s%s: the run keeps its own.",
            ", ".join(differing[:3]),
            more,
        )


def check_continues(before: Config, now: Config, settings: LoopSettings, path: Path, metrics: Config) -> None:
    """Raises AlreadyFinished if no limit of a finished run has changed, and Mistake if it would still end at once."""
    reached = " and ".join(reached_limits(settings, metrics))
    if all(value_at(now, key) == value_at(before, key) for key in LIMITS):
        raise AlreadyFinished(
            f"The run in {path} is finished{f' and has reached {reached}' if reached else ''}. To train it longer, "
            f"raise {', '.join(LIMITS[:-1])} or {LIMITS[-1]}; overwrite=true instead of resume=true starts over."
        )
    if reached:
        raise Mistake(
            f"The run in {path} is finished and has reached {reached}: raise every "
            "limit that it has reached to train it longer, or use overwrite=true instead of resume=true to start over."
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
    """Raises Mistake if the SHA-256 of a corpus file has changed since the run was started, or if a PREFIX.doc is new
    or gone.
    """
    changed = [name for name, digest in now.items() if before.get(name, digest) != digest]
    changed += [name for name in sorted(before.keys() ^ now.keys()) if before and name.endswith(".doc")]
    if changed:
        raise Mistake(f"{changed[0]} has changed since the run was started; restore the file, or start a new run.")


def _given_keys(job: Job[Any], stored: Config) -> list[tuple[str, str]]:
    """Pairs each key that the command line sets with every key at or below it; `_target_` and `name` come first.

    `logger` counts as one value, because the loggers of the command line replace all stored ones.
    """
    return [
        (given, leaf)
        for given in job.given
        for key in [LOGGER if given.split(".")[0] == LOGGER else given]
        for leaf in sorted(
            _ungrouped_keys(key, value_at(job.config, key), value_at(stored, key)),
            key=lambda leaf: leaf.rpartition(".")[2] not in ("_target_", "name"),
        )
    ]


def _ungrouped_keys(key: str, value: Any, other: Any) -> list[str]:
    """The dotted keys, at or below `key`, at which at least one of the two values is not a group or is `logger`."""
    if key == LOGGER or not (isinstance(value, dict) and isinstance(other, dict)):
        return [key]
    names = dict.fromkeys([*other, *value])
    return [leaf for name in names for leaf in _ungrouped_keys(f"{key}.{name}", value.get(name), other.get(name))]
