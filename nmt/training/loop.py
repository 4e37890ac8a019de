"""Training a prepared run, and the errors that end it."""

import logging
import pickle
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch.callbacks import Callback, LearningRateMonitor, Timer
from rich.console import Console

from nmt.errors import FULL_DISK, CheckFailed, Mistake
from nmt.files import locked, remove_parts, write_json
from nmt.models.embeddings import with_plain_weights
from nmt.ranks import rank
from nmt.runs.directory import RunDirectory
from nmt.runs.load import choose_device, save_weights
from nmt.runs.record import peak_memory_mib
from nmt.signals import INTERRUPTED
from nmt.training.averaging import EMAWeightAveraging
from nmt.training.checkpoints import (
    LAST,
    BestCheckpoints,
    LastCheckpoint,
    RecentCheckpoints,
    WholeFiles,
    load_checkpoint,
    newest_whole,
    tidy,
)
from nmt.training.extensions import build_callbacks, build_loggers, logger_errors
from nmt.training.limits import reached_limits
from nmt.training.machine import build_trainer
from nmt.training.not_finite import NotFinite
from nmt.training.out_of_memory import batch_too_large
from nmt.training.preparation import Prepared
from nmt.training.progress import Progress, TrainingBar
from nmt.training.stopping import Connecting, FollowPlateau, LastValidation, StopEarly, StopOnSignal, Stopped

logger = logging.getLogger(__name__)


@contextmanager
def writing(prepared: Prepared) -> Iterator[None]:
    """Holds the run directory while a run trains: locks it, and writes the files that a stopped run resumes from.

    Raises Mistake if another process writes to it, and CheckFailed if the disk is full.
    """
    run = prepared.run
    if rank() > 0:
        # Only the leader writes, and only its exit code counts; a different one here would look like a crash.
        with suppress(Stopped):
            yield
        return
    with locked(run.path), full_disk(run):
        # The preparation took minutes, in which another command may have trained in this folder.
        if run.state() != prepared.state:
            raise Mistake(f"Another process has written to {run.path} in the meantime; run the command again.")
        remove_parts(run.path)
        tidy(run.checkpoints, prepared.checkpoint)
        prepared.store()
        yield


def fit(prepared: Prepared) -> dict[str, Any]:
    """Trains to the end and saves the best weights; returns what this adds to metrics.json: steps, time, best score.

    In a distributed run, only the first process saves the weights; the others return an empty dict. Raises
    BatchTooLarge if memory runs out, CheckFailed if training cannot continue, and Stopped after a signal.
    """
    run, settings = prepared.run, prepared.settings
    validation = settings.validation

    # A step sums the losses of its batches, divides the gradients once by the number of target tokens, clips them, and
    # updates the weights.
    task = prepared.task
    if settings.trainer.precision in ("64-true", "64"):
        # Lightning converts the task only after loading a checkpoint, and float32 would round a resumed run's weights.
        task.double()

    # The callbacks run between the steps. Lightning calls them in this order, except that it calls those that save
    # checkpoints last.
    console = Console(stderr=True)
    # A terminal that cannot move its cursor, such as an editor's, gets lines too.
    bar = sys.stderr.isatty() and not console.is_dumb_terminal and rank() == 0
    max_seconds = settings.trainer.max_seconds
    progress = Progress(
        task,
        every=settings.trainer.log_every_n_steps,
        lines=not bar,
        max_seconds=max_seconds,
        counted=task.counted,
    )
    time_limit = Timer(None if max_seconds is None else timedelta(seconds=max_seconds), verbose=False)
    stop_early = StopEarly(
        validation.metric,
        patience=validation.patience,
        mode=validation.better,
        check_finite=False,
        check_on_train_epoch_end=False,
    )
    best = BestCheckpoints(run.checkpoints, validation.metric, validation.better, settings.checkpoints.keep)
    callbacks: list[Callback] = [
        progress,
        *([TrainingBar(progress, console, task.counted)] if bar else []),
        # These run once the whole validation split has been read, just before its loss is logged.
        *prepared.validations,
        FollowPlateau(validation.metric, -1 if validation.better == "max" else 1),
        LastValidation(),
        time_limit,
        stop_early,
        # The user's own see every step and validation as those above do, and their states are in the checkpoints.
        *build_callbacks(settings.callbacks),
    ]
    # Swaps the averaged weights in when a validation begins, and out after the callbacks above that use them.
    if settings.ema_decay is not None:
        callbacks.append(EMAWeightAveraging(settings.ema_decay))
    if settings.checkpoints.recent:
        callbacks.append(RecentCheckpoints(run.checkpoints, settings.checkpoints.recent))
    # LastCheckpoint comes after every callback whose state a resumed run needs: that state is part of the checkpoint.
    connecting = Connecting(prepared.processes, settings.trainer.num_nodes)
    callbacks += [connecting, best, LastCheckpoint(run.checkpoints), StopOnSignal(run.checkpoints / LAST)]
    with logger_errors(partial(where_to_resume, run)):
        loggers = build_loggers(settings.logger, run.path, run.logs)
    if loggers:
        callbacks.append(LearningRateMonitor(logging_interval="step"))

    # Lightning iterates and validates every validation.every steps; each step is training_step in step.py.
    trainer = build_trainer(
        settings.trainer,
        max_steps=prepared.max_steps,
        val_check_interval=validation.every,
        check_val_every_n_epoch=None,
        use_distributed_sampler=False,
        num_sanity_val_steps=0,
        callbacks=callbacks,
        logger=loggers,
        plugins=[WholeFiles()],
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=run.path,
    )
    last = prepared.checkpoint
    logger.info("Run directory: %s%s", run.path, f", resumed from {last.name}" if last else "")
    try:
        with batch_too_large(prepared), logger_errors(partial(where_to_resume, run)), connecting:
            trainer.fit(task, prepared.data, ckpt_path=last, weights_only=True)
    except NotFinite as error:
        if trainer.is_global_zero:
            write_json(run.nonfinite, step_as_text(error, prepared))
        raise CheckFailed(f"{error} {error.remedy()} The sentences of this step are in {run.nonfinite}.") from error
    except Stopped:
        logger.warning("Stopped at step %d with a checkpoint; resume=true continues from there.", trainer.global_step)
        raise
    except SystemExit as stop:
        logger.warning("Stopped at step %d. %s", trainer.global_step, where_to_resume(run))
        # Lightning exits with status 1 after Ctrl-C.
        if trainer.interrupted and stop.code == 1:
            sys.exit(INTERRUPTED)
        raise
    except pickle.UnpicklingError as error:
        raise Mistake(f"{last} is not a checkpoint of a training run; start over with overwrite=true.") from error
    finally:
        task.forget_recorded_steps()
    if not trainer.is_global_zero:
        return {}

    # At the end, save the weights with the best validation score, and report what training cost.
    if not best.best_model_path:
        if not any(run.checkpoints.glob("best-*.ckpt")):
            raise CheckFailed(
                f"The run in {run.path} has ended at step {trainer.global_step} without a validation, so it has no "
                "best weights: add resume=true, and raise what ended it, trainer.max_steps or trainer.max_time."
            )
        raise CheckFailed(f"{run.checkpoints} no longer contains the best checkpoint: start over with overwrite=true.")
    used = {
        "steps": trainer.global_step,
        "wall_time_seconds": round(time_limit.time_elapsed(), 1),
        "validations_since_best": stop_early.wait_count,
    }
    reached = reached_limits(settings, used)
    if not reached and settings.trainer.max_epochs is not None and trainer.global_step >= prepared.max_steps:
        reached = [f"trainer.max_epochs={settings.trainer.max_epochs}"]
    ended_by = " and ".join(reached) or "a callback stopped it"
    logger.info("Training ended at step %d: %s", trainer.global_step, ended_by)
    checkpoint, value = load_checkpoint(Path(best.best_model_path)), best.best_model_score
    task.load_state_dict(checkpoint["state_dict"])
    save_weights(prepared.model, run.weights)
    # What metrics.json says about training: its cost, and the validation score of the saved weights.
    seconds = progress.training_seconds
    return {
        **used,
        "best": {
            "step": checkpoint["global_step"],
            "metric": validation.metric,
            "value": None if value is None else round(value.item(), 4),
        },
        "target_tokens": task.target_tokens,
        "target_tokens_per_second": round(task.target_tokens / seconds) if seconds else None,
        # The jobs of a sweep may share a process, whose peak memory then belongs to no single job.
        "peak_memory_mib": None if prepared.in_sweep else peak_memory_mib(),
    }


def ready_to_score(prepared: Prepared) -> torch.device:
    """Prepares a trained model for inference; returns the device to score it on."""
    with_plain_weights(prepared.model.eval())
    return choose_device("cpu" if prepared.settings.trainer.accelerator == "cpu" else "auto")


def step_as_text(error: NotFinite, prepared: Prepared) -> dict[str, Any]:
    """A report on a step whose loss or gradient is not finite, with its sentences as text."""
    source, target = prepared.tokenizers
    return {
        "step": error.step,
        "loss": str(error.loss),
        "gradient_norm": str(error.norm),
        "sentences": [
            {
                "training_pair": example.number,
                "source": source.decode(example.source),
                "target": target.decode(example.target),
            }
            for example in error.examples
        ],
    }


@contextmanager
def full_disk(run: RunDirectory) -> Iterator[None]:
    """Turns a full-disk error into CheckFailed, whose message says where to resume."""
    show = threading.excepthook

    def show_others(args: threading.ExceptHookArgs) -> None:
        # TensorBoard writes in a thread of its own. If the disk is full there, the run's next write reports it.
        if not (isinstance(args.exc_value, OSError) and args.exc_value.errno in FULL_DISK):
            show(args)

    threading.excepthook = show_others
    try:
        yield
    except OSError as error:
        if error.errno not in FULL_DISK:
            raise
        path = error.filename or run.path
        raise CheckFailed(f"The disk is full ({path}). Free some space. {where_to_resume(run)}") from error
    finally:
        threading.excepthook = show


def where_to_resume(run: RunDirectory) -> str:
    """Message: the checkpoint from which a stopped run can resume."""
    try:
        whole = newest_whole(run.checkpoints)
    except Mistake as error:
        return str(error)
    if whole is None:
        command = "resume=true" if run.started else "the same command"
        return f"There is no checkpoint yet: {command} starts over."
    step = ""
    with suppress(Exception):  # called while another error is being raised
        checkpoint = torch.load(whole, map_location="cpu", weights_only=True, mmap=True)
        step = f" (step {checkpoint['global_step']})"
    return f"{whole}{step} is intact: resume=true continues from it."
