"""The Lightning trainer of a run: its options, its callbacks, its logs."""

import logging
import pickle
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import torch
from lightning import Trainer
from lightning.pytorch.callbacks import Callback, LearningRateMonitor, RichProgressBar
from lightning.pytorch.loggers import Logger

from nmt.config.nodes import Config, make
from nmt.data.corpus import Pairs
from nmt.data.module import TranslationData
from nmt.decoding.translator import Translator
from nmt.errors import FULL_DISK, INTERRUPTED, CheckFailed
from nmt.evaluation.scores import Bleu
from nmt.runs.directory import RunDirectory
from nmt.runs.references import is_tokenized
from nmt.training.averaging import EMAWeightAveraging
from nmt.training.building import build_trainer
from nmt.training.checkpoints import (
    BestCheckpoints,
    LastCheckpoint,
    RecentCheckpoints,
    WholeFiles,
    newest_whole,
)
from nmt.training.progress import Progress
from nmt.training.settings import Settings
from nmt.training.stopping import FollowPlateau, LastValidation, StopEarly, StopOnSignal, Stopped, TimeLimit
from nmt.training.task import TranslationTask
from nmt.training.validation import ValidationBleu

logger = logging.getLogger(__name__)


class Fitting(NamedTuple):
    """A trainer and the callbacks that are asked afterwards."""

    trainer: Trainer
    best: BestCheckpoints
    progress: Progress
    time_limit: TimeLimit
    stop_early: StopEarly

    @property
    def used(self) -> Config:
        """What the training has used of its limits so far, as metrics.json keeps it."""
        return {
            "steps": self.trainer.global_step,
            "wall_time_seconds": round(self.time_limit.time_elapsed(), 1),
            "validations_since_best": self.stop_early.wait_count,
        }


def build_fitting(
    settings: Settings,
    run: RunDirectory,
    task: TranslationTask,
    translator: Translator,
    valid: Pairs,
    probes: Sequence[Callback],
    max_steps: int,
) -> Fitting:
    """The trainer; `valid` holds source lines and raw references. Raises ValueError where Lightning refuses."""
    config, monitor = settings.config, settings.monitor
    bar = sys.stderr.isatty()
    best = BestCheckpoints(run.checkpoints, monitor.metric, monitor.better, settings.positive("checkpoints.keep"))
    progress = Progress(task, settings.positive("trainer.log_every_n_steps"), not bar, settings.max_seconds)
    time_limit, stop_early = TimeLimit(config["trainer"]["max_time"], verbose=False), _stop_early(settings)
    watching = [_validation_bleu(settings, translator, valid), *probes]
    ending = [FollowPlateau(monitor.metric, monitor.sign), LastValidation(), time_limit, stop_early]
    callbacks = [progress, *watching, *ending, *_of_weights(config, run), best]
    # After all that decides and keeps: what it holds is where a resumed run goes on.
    callbacks += [LastCheckpoint(run.checkpoints), StopOnSignal(run.last)]
    if bar:
        callbacks.append(RichProgressBar(console_kwargs={"stderr": True}))
    loggers = _loggers(config, run)
    if loggers:
        callbacks.append(LearningRateMonitor(logging_interval="step"))
    trainer = build_trainer(
        config,
        max_steps=max_steps,
        val_check_interval=settings.positive("validation.every") * config["trainer"]["accumulate_grad_batches"],
        check_val_every_n_epoch=None,
        use_distributed_sampler=False,
        num_sanity_val_steps=0,
        callbacks=callbacks,
        logger=loggers,
        plugins=[WholeFiles()],
        enable_progress_bar=bar,
        enable_model_summary=False,
        default_root_dir=run.path,
    )
    return Fitting(trainer, best, progress, time_limit, stop_early)


def fit(fitting: Fitting, run: RunDirectory, task: TranslationTask, data: TranslationData, last: Path | None) -> None:
    """Trains to the end, from the checkpoint `last` if there is one.

    Raises NotFinite, and ValueError for a checkpoint that is none.
    """
    trainer = fitting.trainer
    logger.info("Run directory: %s%s", run.path, f", resumed from {last.name}" if last else "")
    try:
        trainer.fit(task, data, ckpt_path=last, weights_only=True)
    except Stopped:
        logger.warning("Stopped at step %d, and saved; resume=true goes on from there.", trainer.global_step)
        raise
    except SystemExit as stop:
        logger.warning("Stopped at step %d. %s", trainer.global_step, kept(run))
        # Lightning ends with 1 after Ctrl-C.
        if trainer.interrupted and stop.code == 1:
            sys.exit(INTERRUPTED)
        raise
    except pickle.UnpicklingError as error:
        raise ValueError(f"{last} is not a checkpoint of nmt.train; begin again with overwrite=true.") from error


@contextmanager
def told_full_disk(run: RunDirectory) -> Iterator[None]:
    """Turns the error of a full disk into CheckFailed, which says what there is to go on from."""
    try:
        yield
    except OSError as error:
        if error.errno not in FULL_DISK:
            raise
        raise CheckFailed(f"The disk is full ({error.filename or run.path}). Make room. {kept(run)}") from error


def kept(run: RunDirectory) -> str:
    """A sentence on what a training whose disk was full can go on from."""
    try:
        whole = newest_whole(run.checkpoints)
    except ValueError as error:
        return str(error)
    if whole:
        return f"{whole} is whole{_of_step(whole)}: resume=true goes on from it."
    return f"There is no checkpoint yet: {'resume=true' if run.started else 'the same command'} begins again."


def _of_step(checkpoint: Path) -> str:
    """Of which step it is; nothing where it is another file, because this is said when a training ends already."""
    with suppress(Exception):
        found = torch.load(checkpoint, map_location="cpu", weights_only=True, mmap=True)
        return f" and of step {found['global_step']}"
    return ""


def _of_weights(config: Config, run: RunDirectory) -> list[Callback]:
    """What averages weights, or keeps some to be averaged; after all that reads the validated ones."""
    decay, recent = config["ema_decay"], config["checkpoints"]["recent"]
    averaging = [] if decay is None else [EMAWeightAveraging(decay)]
    return averaging + ([RecentCheckpoints(run.checkpoints, recent)] if recent else [])


def quiet(leader: bool) -> None:
    """Silences what Lightning says about itself, and our own lines in all processes but the leader; warnings stay."""
    if not leader:
        logging.getLogger("nmt").setLevel(logging.WARNING)
    logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)
    logging.getLogger("lightning.fabric").setLevel(logging.WARNING)
    # This one tells which process has died, before it ends the others.
    logging.getLogger("lightning.fabric.strategies.launchers.subprocess_script").setLevel(logging.INFO)
    warnings.filterwarnings("ignore", message=".*LeafSpec.*", category=FutureWarning)
    warnings.filterwarnings("ignore", message=".*does not have many workers.*")
    # What is logged is of all processes already.
    warnings.filterwarnings("ignore", message=".*sync_dist=True.*")
    warnings.filterwarnings("ignore", message=".*is smaller than the logging interval.*")
    warnings.filterwarnings("ignore", message="Checkpoint directory .* exists and is not empty.*")


def _validation_bleu(settings: Settings, translator: Translator, valid: Pairs) -> ValidationBleu:
    # The headline of corpus_scores, without the interval: a thousand resamples take longer than the translations.
    of_tokens = is_tokenized(settings.config["data"].get("tokenized"), valid.target)
    metric = Bleu(tokenize="none" if of_tokens else "13a", force=True)
    sentences = settings.positive("validation.sentences")

    def bleu(hypotheses: Sequence[str], references: Sequence[str]) -> float:
        return metric.corpus_score(hypotheses, [references]).score

    # What decides when to stop and what is best may not depend on the clock.
    decides = settings.monitor.metric == "valid_bleu"
    share = 1.0 if decides else settings.config["validation"]["max_time_fraction"]
    return ValidationBleu(translator, valid.source[:sentences], valid.target[:sentences], bleu, share)


def _stop_early(settings: Settings) -> StopEarly:
    patience = settings.positive("validation.patience")
    monitor = settings.monitor
    return StopEarly(
        monitor.metric, patience=patience, mode=monitor.better, check_finite=False, check_on_train_epoch_end=False
    )


def _loggers(config: Config, run: RunDirectory) -> list[Logger]:
    # A resumed run logs beside what it has logged before: the CSV logger would delete that.
    versions = [int(number) for path in run.logs.glob("version_*") if (number := path.name[8:]).isdecimal()]
    version = max(versions, default=-1) + 1
    return [make(node)(save_dir=run.logs, name="", version=version) for node in config["logger"].values()]
