"""nmt.train: from a configuration to a finished run directory."""

import logging
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import safetensors.torch
import torch

from nmt.data.batch import Example
from nmt.data.corpus import check_files, read_pairs
from nmt.data.dataset import TrainingData, encode_pairs, training_dataset
from nmt.data.module import TranslationData
from nmt.data.plan import plan
from nmt.data.vocabulary import tokenizers as trained_tokenizers
from nmt.decoding.beam import BeamSearch
from nmt.decoding.translator import Translator
from nmt.evaluation.scores import Score
from nmt.models.base import Seq2Seq
from nmt.run.build import Trained, build_model, choose_device
from nmt.run.build_training import build_data, build_task, check_buildable, choose_machine, faster_precision
from nmt.run.compose import Job, make
from nmt.run.evaluate import split_task
from nmt.run.evaluation import evaluate_runs
from nmt.run.exits import INTERRUPTED
from nmt.run.fit import Fitting, build_fitting, quiet
from nmt.run.probes import Probes, write_film
from nmt.run.record import corpus_hashes, git_commit, peak_memory_mib, print_run, scores_record, versions
from nmt.run.references import read_references
from nmt.run.resume import check_corpora, lengthened_command, new_config, resumed_config, run_directory
from nmt.run.rundir import RunDirectory
from nmt.run.settings import Settings
from nmt.text import TokenizerPair
from nmt.training import TranslationTask

logger = logging.getLogger(__name__)

# Where training ends by the clock alone, the stream of batches still needs a length.
_NO_LIMIT = 10**9


class Parts(NamedTuple):
    """What a training is made of."""

    settings: Settings
    run: RunDirectory
    tokenizers: TokenizerPair
    model: Seq2Seq
    data: TranslationData
    max_steps: int


def train(job: Job) -> None:
    """Trains, saves the best weights, scores the test split and prints the run directory and the scores.

    Raises ValueError and FileNotFoundError before anything is trained when the configuration cannot be used.
    """
    start = time.monotonic()
    run = run_directory(job)
    resume = job.config["resume"]
    if not resume:
        run.require_free(job.config["overwrite"] or _rank() != 0)
    settings = Settings(resumed_config(job, run) if resume else new_config(job))
    quiet(leader=_rank() == 0)
    check_buildable(settings)
    machine = choose_machine(settings.config)
    faster = None if resume else faster_precision(settings.config, machine.device)
    if faster:
        logger.info("This CPU trains faster, and as well, with trainer.precision=%s", faster)
    corpora = [*settings.splits.train, *settings.splits.held_out]
    check_files(corpora, settings.direction)
    hashes = corpus_hashes(corpora, settings.direction)
    if resume:
        check_corpora(run.metrics().get("corpora", {}), hashes)
    parts = _build(job, settings, run, machine.processes)
    task = build_task(settings.config, parts.model)
    fitting = _fitting(parts, task)
    if _rank() == 0:
        _store(job, parts, hashes)
    _fit(fitting, parts, task)
    if _rank() == 0:
        # Jobs of a sweep may share a process, whose memory is then not that of one of them.
        memory = None if job.sweep_dir else peak_memory_mib()
        _finish(fitting, parts, task, start, memory)


def _build(job: Job, settings: Settings, run: RunDirectory, processes: int) -> Parts:
    config, splits, direction = settings.config, settings.splits, settings.direction
    cache = Path(str(job.config["cache_dir"]))
    if job.config["resume"]:
        pair = run.tokenizers(direction)
    else:
        pair = trained_tokenizers(splits.train, direction, **config["tokenizer"], cache_dir=cache)
    torch.manual_seed(config["seed"])
    model = build_model(config, pair)
    rows, report = training_dataset(splits.train, direction, pair, settings.filters, splits.held_out, cache)
    logger.info("Training data: %s", report)
    max_steps = _max_steps(settings, rows, processes)
    valid = encode_pairs(read_pairs(splits.valid, direction), pair)
    _check_lengths(model, rows, valid)
    data = build_data(config, rows, valid, max_steps)
    return Parts(settings, run, pair, model, data, max_steps)


def _check_lengths(model: Seq2Seq, training: TrainingData, valid: Sequence[Example]) -> None:
    """Raises ValueError when a sentence is longer than the model can read; those of the test split are cut."""
    lengths = {
        "training": training.lengths.max(axis=0).tolist(),
        "validation": [max(len(side) + 1 for side in sides) for sides in list(zip(*valid, strict=True))[1:]],
    }
    for split, (source, target) in lengths.items():
        for side, length, most in (("source", source, model.max_source), ("target", target, model.max_target)):
            if most is not None and length > most:
                raise ValueError(
                    f"The longest {side} of the {split} data has {length} pieces with EOS, but scorer=location has "
                    f"weights for {most}: give its max_length {length} or more, or leave out long sentences."
                )


def _max_steps(settings: Settings, rows: TrainingData, processes: int) -> int:
    """The nearer of trainer.max_steps and the steps of trainer.max_epochs; plans the first epoch in any case.

    Raises ValueError when the sentences cannot be put into batches.
    """
    config, limit = settings.config, settings.max_steps or _NO_LIMIT
    budget, accumulate = config["batching"]["batch_tokens"], config["trainer"]["accumulate_grad_batches"]
    steps = 0
    for epoch in range(settings.max_epochs or 1):
        steps += len(plan(config["seed"], epoch, rows.lengths, budget, accumulate, processes))
        if epoch == 0:
            logger.info("An epoch has %d steps", steps)
    return limit if settings.max_epochs is None else min(steps, limit)


def _fitting(parts: Parts, task: TranslationTask) -> Fitting:
    config = parts.settings.config
    greedy = BeamSearch(beam_size=1, constraints=make(config["search"]["constraints"]))
    translator = Translator(parts.model, parts.tokenizers, greedy, config["batching"]["batch_tokens"])
    valid = read_references(parts.settings.splits.valid, parts.settings.direction)
    probes = Probes(parts.settings, parts.run, parts.tokenizers, parts.model, valid)
    return build_fitting(parts.settings, parts.run, task, translator, valid, probes.callbacks(), parts.max_steps)


def _store(job: Job, parts: Parts, hashes: dict[str, str]) -> None:
    """Writes what a resumed run and the commands that read it need, before the first step."""
    run, settings, command = parts.run, parts.settings, job.command
    if job.config["resume"]:
        command = lengthened_command(run.metrics().get("command", command), run.config(), settings.config)
    else:
        run.clear()
    run.write_config(settings.config)
    run.write_tokenizers(parts.tokenizers, settings.direction)
    run.write_metrics(
        {
            "finished": False,
            "command": command,
            "seed": settings.config["seed"],
            "direction": str(settings.direction),
            "parameters": sum(parameter.numel() for parameter in parts.model.parameters()),
            "corpora": hashes,
            "versions": versions(),
            "git_commit": git_commit(),
        }
    )


def _fit(fitting: Fitting, parts: Parts, task: TranslationTask) -> None:
    last = parts.run.last if parts.run.last.is_file() else None
    logger.info("Run directory: %s%s", parts.run.path, f", resumed from {last.name}" if last else "")
    try:
        fitting.trainer.fit(task, parts.data, ckpt_path=last, weights_only=True)
    except SystemExit as stop:
        logger.warning("Stopped at step %d; resume=true goes on from the last validation.", fitting.trainer.global_step)
        # Lightning ends with 1 after Ctrl-C.
        if fitting.trainer.interrupted and stop.code == 1:
            sys.exit(INTERRUPTED)
        raise


def _finish(fitting: Fitting, parts: Parts, task: TranslationTask, start: float, memory: int | None) -> None:
    """Saves the best checkpoint's weights, scores the test split, and prints where the run lies and its scores."""
    run, settings = parts.run, parts.settings
    best = torch.load(fitting.best.best_model_path, map_location="cpu", weights_only=True)
    task.load_state_dict(best["state_dict"])
    safetensors.torch.save_model(parts.model, str(run.weights))
    scores = _evaluate(parts)
    seconds = fitting.progress.training_seconds
    record: dict[str, Any] = run.metrics() | {
        "finished": True,
        "scores": {"test": scores_record(scores)} if scores else {},
        "steps": fitting.trainer.global_step,
        "best": {
            "step": best["global_step"],
            "metric": settings.monitor.metric,
            "value": _rounded(fitting.best.best_model_score),
        },
        "target_tokens": task.target_tokens,
        "target_tokens_per_second": round(task.target_tokens / seconds) if seconds else None,
        "peak_memory_mib": memory,
        "wall_time_seconds": round(time.monotonic() - start, 1),
    }
    run.write_metrics(record)
    write_film(run)
    print_run(run.path, scores)


def _evaluate(parts: Parts) -> list[Score]:
    """Evaluates the model on the test split, if there is one; its scores."""
    settings = parts.settings
    if "test" not in settings.splits.tests:
        return []
    logger.info("Scoring the test split")
    place = choose_device("cpu" if settings.config["trainer"]["accelerator"] == "cpu" else "auto")
    model = parts.model.eval().to(place)
    trained = Trained(parts.run, settings.config, settings.direction, parts.tokenizers, model, place)
    return evaluate_runs([trained], split_task(trained, "test")).scores


def _rounded(value: torch.Tensor | None) -> float | None:
    return None if value is None else round(value.item(), 4)


def _rank() -> int:
    """The number of this process among those of a distributed training; Lightning starts the others with it set."""
    return int(os.environ.get("LOCAL_RANK", "0"))
