"""nmt.train: from a configuration to a finished run directory."""

import logging
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import torch

from nmt.config.job import Job
from nmt.config.nodes import Config, make
from nmt.config.schema import RunSettings, validated
from nmt.data.batch import Example
from nmt.data.corpus import check_files, read_pairs
from nmt.data.dataset import TrainingData, encode_pairs, training_dataset
from nmt.data.module import TranslationData
from nmt.decoding.beam import BeamSearch
from nmt.decoding.translator import Translator
from nmt.errors import CheckFailed
from nmt.evaluation.scores import Score
from nmt.files import cache_folder, check_unlocked, locked, write_json
from nmt.models.base import Seq2Seq
from nmt.models.embeddings import with_plain_weights
from nmt.runs.directory import RunDirectory
from nmt.runs.evaluation import score_test_split
from nmt.runs.load import Trained, choose_device, save_weights
from nmt.runs.record import corpus_hashes, peak_memory_mib, print_run, scores_record, training_record
from nmt.runs.references import read_references
from nmt.runs.search import longest_source
from nmt.text import TokenizerPair
from nmt.training import TranslationTask
from nmt.training.begin import (
    excluded_corpora,
    in_plain_text,
    start_model,
    start_record,
    start_run,
    start_tokenizers,
    training_corpora,
)
from nmt.training.building import (
    Machine,
    build_data,
    build_task,
    check_buildable,
    choose_machine,
    faster_precision,
    steps_of_training,
)
from nmt.training.checkpoints import load_checkpoint, newest_whole, tidy
from nmt.training.loop import Fitting, build_fitting, fit, quiet, told_full_disk
from nmt.training.out_of_memory import BatchTooLarge, told_too_large
from nmt.training.probe_maps import Probes, write_film
from nmt.training.resume import (
    batch_settings,
    changed_command,
    check_corpora,
    check_epochs_left,
    last_checkpoint,
    new_config,
    resumed_config,
    run_directory,
    same_steps,
)
from nmt.training.settings import Settings, becomes_plain
from nmt.training.stopping import Stopped
from nmt.training.task import NotFinite

logger = logging.getLogger(__name__)


class Parts(NamedTuple):
    """What a training is made of."""

    settings: Settings
    run: RunDirectory
    tokenizers: TokenizerPair
    model: Seq2Seq
    start_record: Config
    data: TranslationData
    max_steps: int


def train(job: Job) -> None:
    """Trains, saves the best weights, scores the test split and prints the run directory and the scores.

    Raises ValueError and FileNotFoundError before anything is trained when the configuration cannot be used.
    """
    run = run_directory(job)
    resume, before = job.config["resume"], run.state()
    settings = Settings(resumed_config(job, run) if resume else new_config(job))
    quiet(leader=_rank() == 0)
    check_buildable(settings)
    machine = choose_machine(settings.config)
    corpora = [*settings.splits.train, *settings.splits.held_out]
    check_files(corpora, settings.direction)
    if not resume:
        run.require_free(job.config["overwrite"] or _rank() != 0)
    if _rank() == 0:
        check_unlocked(run.path)  # after the mistakes in what is given, before the data are prepared
    if resume:
        mine = machine.processes * settings.config["trainer"]["accumulate_grad_batches"]
        batches = run.metrics().get("batches_a_step", mine)
        settings = Settings(same_steps(settings.config, batches, machine.processes))
    if not resume and (faster := faster_precision(settings.config, machine.device)):
        logger.info("This CPU trains faster, and as well, with trainer.precision=%s", faster)
    hashes = corpus_hashes(corpora, settings.direction)
    if resume:
        check_corpora(run.metrics().get("corpora", {}), hashes)
    try:
        _attempt(job, settings, run, machine, hashes, before)
        return
    except BatchTooLarge as error:
        # Not where a checkpoint would be lost, or where others train too.
        if machine.processes > 1 or list(run.checkpoints.glob("*.ckpt")) or not error.can_be_halved:
            raise CheckFailed(error.remedy()) from error
        smaller = error.halved()
    # After the error is gone, and with it what it held.
    logger.warning("The memory of the device is full: beginning again with %s.", smaller.change)
    try:
        _attempt(job, Settings(smaller.config), run, machine, hashes, run.state())
    except BatchTooLarge as error:
        raise CheckFailed(error.remedy(halved_before=True)) from error


def _attempt(
    job: Job, settings: Settings, run: RunDirectory, machine: Machine, hashes: dict[str, str], before: tuple[bytes, ...]
) -> None:
    """Trains from the beginning or the last checkpoint to the end; `before` is what the folder held at the start."""
    parts = _build(job, settings, run, machine.processes)
    task = build_task(settings.config, parts.model)
    fitting = _fitting(parts, task)
    if job.config["resume"]:
        check_epochs_left(run, parts.max_steps)
    # Not what another process may be about to delete.
    last = last_checkpoint(run) if job.config["resume"] else None
    if _rank() > 0:
        # The leader's exit code tells; another one here would be taken for a death.
        with suppress(Stopped), told_too_large(settings.config, parts.data.training.lengths):
            fit(fitting, run, task, parts.data, last)
        return
    with locked(run.path):
        if run.state() != before:
            raise ValueError(f"Another training has written to {run.path} meanwhile; run the command again.")
        with told_full_disk(run):
            tidy(run.checkpoints, last)
            _store(job, parts, fitting, hashes)
            try:
                with told_too_large(settings.config, parts.data.training.lengths):
                    fit(fitting, run, task, parts.data, last)
            except NotFinite as error:
                write_json(run.nonfinite, _inspected(error, parts.tokenizers))
                raise CheckFailed(f"{error} {error.remedy} Its sentences are in {run.nonfinite}.") from error
            # Jobs of a sweep may share a process, whose memory is then not that of one of them.
            memory = None if job.sweep_dir else peak_memory_mib()
            _finish(fitting, parts, task, memory)


def _inspected(error: NotFinite, tokenizers: TokenizerPair) -> dict[str, Any]:
    """What was in the step whose loss or gradient is not finite, as text."""
    source, target = tokenizers
    return {
        "step": error.step,
        "loss": str(error.loss),
        "gradient_norm": str(error.norm),
        "sentences": [
            {"index": index, "source": source.decode(ours), "target": target.decode(theirs)}
            for index, ours, theirs in error.examples
        ],
    }


def _build(job: Job, settings: Settings, run: RunDirectory, processes: int) -> Parts:
    config, splits, direction = settings.config, settings.splits, settings.direction
    cache = cache_folder(job.config["cache_dir"])
    # A checkpoint brings its weights with it, and the run that they once came from may be gone.
    goes_on = job.config["resume"] and newest_whole(run.checkpoints) is not None
    first = None if goes_on else start_run(settings, run.path)
    # A run that was killed while its first files were written has no tokenizers yet.
    has_begun = job.config["resume"] and run.metrics()
    corpora = training_corpora(settings, cache)
    pair = run.tokenizers(direction) if has_begun else start_tokenizers(first, settings, corpora, cache)
    model = start_model(first, config, pair)
    record = start_record(first, run.metrics() if job.config["resume"] else {})
    excluded = excluded_corpora(settings, cache)
    rows, report = training_dataset(corpora, direction, pair, settings.filters, excluded, cache)
    logger.info("Training data: %s", report)
    max_steps = steps_of_training(settings, rows, processes)
    valid = encode_pairs(read_pairs(in_plain_text(splits.valid, settings, cache), direction), pair)
    _check_lengths(model, rows, valid)
    data = build_data(config, pair, rows, valid, max_steps)
    return Parts(settings, run, pair, model, record, data, max_steps)


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


def _fitting(parts: Parts, task: TranslationTask) -> Fitting:
    config = parts.settings.config
    greedy = BeamSearch(beam_size=1, constraints=make(config["search"]["constraints"]))
    sizes = config["batching"]["batch_tokens"], longest_source(config)
    translator = Translator(parts.model, parts.tokenizers, greedy, *sizes)
    splits = parts.settings.splits
    plain = becomes_plain(config["data"], splits.valid)
    valid = read_references(splits.valid, parts.settings.direction, plain)
    probes = Probes(parts.settings, parts.run, parts.tokenizers, parts.model, valid)
    return build_fitting(parts.settings, parts.run, task, translator, valid, probes.callbacks(), parts.max_steps)


def _store(job: Job, parts: Parts, fitting: Fitting, hashes: dict[str, str]) -> None:
    """Writes what a resumed run and the commands that read it need, before the first step."""
    run, settings, command, resume = parts.run, parts.settings, job.command, job.config["resume"]
    asked = run.metrics().get("asked", batch_settings(run.config())) if resume else batch_settings(new_config(job))
    if resume:
        command = changed_command(run.metrics().get("command", command), run.config(), settings.config)
    else:
        run.clear()
        command = changed_command(command, new_config(job), settings.config)
    try:
        run.write_config(settings.config)
        run.write_tokenizers(parts.tokenizers, settings.direction)
        record = training_record(
            validated(RunSettings, settings.config), parts.model, fitting.trainer.world_size, hashes
        )
        run.write_metrics({**record, **parts.start_record, "command": command, "asked": asked})
    except OSError:
        # The same command shall begin again.
        if not resume:
            run.clear()
        raise


def _finish(fitting: Fitting, parts: Parts, task: TranslationTask, memory: int | None) -> None:
    """Saves the best checkpoint's weights, scores the test split, and prints where the run lies and its scores."""
    run, settings = parts.run, parts.settings
    if not fitting.best.best_model_path:
        raise CheckFailed(f"{run.checkpoints} has no best checkpoint any more: begin again with overwrite=true.")
    reached = settings.reached(fitting.used) or [f"trainer.max_epochs={settings.max_epochs}"]
    logger.info("The training ended at step %d: %s", fitting.trainer.global_step, " and ".join(reached))
    best = load_checkpoint(Path(fitting.best.best_model_path))
    task.load_state_dict(best["state_dict"])
    save_weights(parts.model, run.weights)
    with_plain_weights(parts.model)
    try:
        scores = _evaluate(parts)
    except torch.OutOfMemoryError as error:
        raise CheckFailed(
            "The memory of the device is full. The training is whole: resume=true trainer.accelerator=cpu scores it."
        ) from error
    seconds = fitting.progress.training_seconds
    record: dict[str, Any] = {
        **run.metrics(),
        **fitting.used,
        "finished": True,
        "scores": {"test": scores_record(scores)} if scores else {},
        "best": {
            "step": best["global_step"],
            "metric": settings.monitor.metric,
            "value": _rounded(fitting.best.best_model_score),
        },
        "target_tokens": task.target_tokens,
        "target_tokens_per_second": round(task.target_tokens / seconds) if seconds else None,
        "peak_memory_mib": memory,
    }
    run.write_metrics(record)
    write_film(run)
    print_run(run.path, scores)


def _evaluate(parts: Parts) -> list[Score]:
    """Evaluates the model on the test split, if there is one; its scores."""
    settings = parts.settings
    place = choose_device("cpu" if settings.config["trainer"]["accelerator"] == "cpu" else "auto")
    model = parts.model.eval().to(place)
    return score_test_split(Trained(parts.run, settings.config, settings.direction, parts.tokenizers, model, place))


def _rounded(value: torch.Tensor | None) -> float | None:
    return None if value is None else round(value.item(), 4)


def _rank() -> int:
    """The number of this process among those of a distributed training, as torchrun, SLURM or Lightning give it."""
    if os.environ.get("NODE_RANK", "0") != "0" and "RANK" not in os.environ:
        return 1
    # A shell that SLURM has started has its SLURM_PROCID too, and so have the processes that Lightning starts from it.
    given = (os.environ.get(name) for name in ("RANK", "LOCAL_RANK", "SLURM_PROCID"))
    return int(next((rank for rank in given if rank is not None), "0"))
