"""A run from its preparation to its end, whatever its task: what nmt.train and nmt.pretrain share."""

import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from nmt.config.nodes import Config
from nmt.errors import CheckFailed
from nmt.files import check_folder, check_writable, locked
from nmt.runs.directory import RunDirectory
from nmt.training.checkpoints import tidy
from nmt.training.loop import fit, full_disk
from nmt.training.machine import quiet, rank
from nmt.training.out_of_memory import BatchTooLarge
from nmt.training.prepared import Prepared
from nmt.training.stopping import Stopped

logger = logging.getLogger(__name__)

Prepare = Callable[[Mapping[str, Any]], Prepared]
"""prepare(changes) prepares the run, with `changes` in its configuration to save memory."""
Finish = Callable[[Prepared, Config], None]
"""finish(prepared, found) ends a run that has its best weights; `found` is what `fit` returned."""


def train_whole(run: RunDirectory, cache_dir: str, prepare: Prepare, finish: Finish) -> None:
    """Prepares a run, trains it and finishes it; if the device runs out of memory, tries again with half the batch.

    Raises ValueError, FileNotFoundError and FileExistsError before training if the configuration cannot be used.
    """
    quiet(leader=rank() == 0)
    check_writable("run_dir", run.path)
    check_folder("cache_dir", cache_dir)
    before = run.state()
    prepared = prepare({})
    try:
        _train(prepared, before, finish)
        return
    except BatchTooLarge as error:
        # Do not try again if a checkpoint would be lost, or if other processes train too.
        if prepared.processes > 1 or list(run.checkpoints.glob("*.ckpt")) or not error.can_be_halved:
            raise CheckFailed(error.remedy()) from error
        changes = error.halved
    # Outside the except block, so that the error's frames no longer hold the device's memory.
    del prepared
    logger.warning(
        "Out of memory: starting over with %s.", " ".join(f"{key}={value}" for key, value in changes.items())
    )
    before = run.state()
    prepared = prepare(changes)
    try:
        _train(prepared, before, finish)
    except BatchTooLarge as error:
        raise CheckFailed(error.remedy(halved_before=True)) from error


def _train(prepared: Prepared, before: tuple[bytes, ...], finish: Finish) -> None:
    """Trains to the end and finishes the run; `before` is the folder's state when it was read."""
    run = prepared.run
    if rank() > 0:
        # The leader's exit code counts; another one here would look like a crash.
        with suppress(Stopped):
            fit(prepared)
        return
    with locked(run.path), full_disk(run):
        if run.state() != before:
            raise ValueError(f"Another process has written to {run.path} in the meantime; run the command again.")
        tidy(run.checkpoints, prepared.checkpoint)
        prepared.store()
        finish(prepared, fit(prepared))
