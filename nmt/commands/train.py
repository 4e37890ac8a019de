"""nmt.train: from a configuration to a finished run directory."""

import os
from pathlib import Path

import torch

from nmt.config.job import Job
from nmt.config.nodes import Config
from nmt.config.schema import RunSettings, TrainSettings
from nmt.errors import CheckFailed
from nmt.models import Seq2Seq
from nmt.models.embeddings import with_plain_weights
from nmt.pages.film import write_film
from nmt.runs.directory import RunDirectory
from nmt.runs.load import LoadedRun, choose_device
from nmt.runs.precision import with_precision
from nmt.runs.record import peak_memory_mib, print_run
from nmt.scoring.run_scores import score_test_split
from nmt.training.loop import fit, writing
from nmt.training.out_of_memory import BatchTooLarge
from nmt.training.preparation import Prepared, prepare
from nmt.training.translation import Translation


def train(job: Job[TrainSettings]) -> None:
    """Trains, saves the best weights, scores the test split, and prints the run directory and its scores.

    Raises Mistake before training if the configuration cannot be used.
    """
    run = RunDirectory(Path(job.settings.run_dir if job.sweep_dir is None else os.path.relpath(job.sweep_dir)))
    # If the device runs out of memory in the first attempt, `halved` is filled for a second one.
    halved: dict[str, int] = {}
    for changes in ({}, halved):
        prepared = prepare(job, run, Translation(), changes=changes)
        try:
            with writing(prepared):
                result = fit(prepared)
                if result:  # In a distributed run, only the leader has one.
                    score(prepared, result, in_sweep=job.sweep_dir is not None)
            return
        except BatchTooLarge as error:
            halved.update(error.halved(prepared))
        # Outside the except block: until it ends, the frames of the error hold the device's memory too.
        del prepared


def score(prepared: Prepared[RunSettings, Seq2Seq], result: Config, in_sweep: bool) -> None:
    """Scores the best weights on the test split, completes metrics.json and prints the run.

    `result` is what training adds to metrics.json.
    """
    run, settings, model = prepared.run, prepared.settings, prepared.model
    # The jobs of a sweep may share a process, whose peak memory then belongs to no single job.
    memory = None if in_sweep else peak_memory_mib()

    with_plain_weights(model)
    device = choose_device("cpu" if settings.trainer.accelerator == "cpu" else "auto")
    trained = LoadedRun(run, settings, prepared.tokenizers, with_precision(model.eval(), "float32", device), device)
    try:
        scores = score_test_split(trained)
    except torch.OutOfMemoryError as error:
        raise CheckFailed(
            "Out of memory while scoring. Training is complete: add resume=true trainer.accelerator=cpu to the command "
            "to score the run on the CPU."
        ) from error
    test = {"test": [score.record() for score in scores]} if scores else {}
    run.write_metrics({**prepared.record, **result, "finished": True, "scores": test, "peak_memory_mib": memory})
    write_film(run.path / "probes")
    print_run(run.path, scores)
