"""nmt.train: from a configuration to a finished run directory."""

import logging
import os
from contextlib import suppress
from pathlib import Path

import torch

from nmt.config.job import Job
from nmt.config.schema import TrainSettings
from nmt.errors import CheckFailed
from nmt.files import check_folder, check_writable, locked
from nmt.models.embeddings import with_plain_weights
from nmt.runs.directory import RunDirectory
from nmt.runs.evaluation import score_test_split
from nmt.runs.load import Trained, choose_device
from nmt.runs.record import peak_memory_mib, print_run
from nmt.training.attention_probes import write_film
from nmt.training.begin import begin
from nmt.training.checkpoints import tidy
from nmt.training.loop import fit, full_disk
from nmt.training.machine import quiet, rank
from nmt.training.out_of_memory import BatchTooLarge
from nmt.training.prepared import Prepared
from nmt.training.resume import resume
from nmt.training.stopping import Stopped

logger = logging.getLogger(__name__)


def train(job: Job[TrainSettings]) -> None:
    """Trains, saves the best weights, scores the test split, and prints the run directory and its scores.

    Raises ValueError, FileNotFoundError and FileExistsError before training if the configuration cannot be used.
    """
    quiet(leader=rank() == 0)
    path = Path(job.settings.run_dir if job.sweep_dir is None else os.path.relpath(job.sweep_dir))
    check_writable("run_dir", path)
    check_folder("cache_dir", job.settings.cache_dir)
    run = RunDirectory(path)
    before = run.state()
    prepare = resume if job.settings.resume else begin
    prepared = prepare(job, run, {})
    in_sweep = job.sweep_dir is not None
    try:
        train_and_score(prepared, before, in_sweep)
        return
    except BatchTooLarge as error:
        # Not if a checkpoint would be lost, or if other processes train too.
        if prepared.processes > 1 or list(run.checkpoints.glob("*.ckpt")) or not error.can_be_halved:
            raise CheckFailed(error.remedy()) from error
        changes = error.halved
    # Outside of the except block, so that the error's frames no longer hold the device's memory.
    del prepared
    logger.warning(
        "Out of memory: beginning again with %s.", " ".join(f"{key}={value}" for key, value in changes.items())
    )
    before = run.state()
    prepared = prepare(job, run, changes)
    try:
        train_and_score(prepared, before, in_sweep)
    except BatchTooLarge as error:
        raise CheckFailed(error.remedy(halved_before=True)) from error


def train_and_score(prepared: Prepared, before: tuple[bytes, ...], in_sweep: bool) -> None:
    """Trains to the end, scores the test split and prints the run; `before` is the folder's state when it was read."""
    run, settings, model = prepared.run, prepared.settings, prepared.model
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
        found = fit(prepared)
        # The jobs of a sweep may share a process, whose peak is then not one job's.
        memory = None if in_sweep else peak_memory_mib()

        with_plain_weights(model)
        place = choose_device("cpu" if settings.trainer.accelerator == "cpu" else "auto")
        trained = Trained(run, settings, prepared.tokenizers, model.eval().to(place), place)
        try:
            scores = score_test_split(trained)
        except torch.OutOfMemoryError as error:
            raise CheckFailed(
                "Out of memory while scoring. Training is complete: resume=true trainer.accelerator=cpu scores it."
            ) from error
        test = {"test": [score.record() for score in scores]} if scores else {}
        run.write_metrics({**prepared.record, **found, "finished": True, "scores": test, "peak_memory_mib": memory})
        write_film(run)
        print_run(run.path, scores)
