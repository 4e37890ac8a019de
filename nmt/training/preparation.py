"""Preparation of a training run: from a command to a run that is ready to train, told once for all runs.

A run is new, starts from the weights of another run, or resumes from its own directory. It trains a translation model
or pretrains an encoder; a `TrainingKind` holds what differs between these two.
"""

import logging
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic

from lightning.pytorch.callbacks import Callback

from nmt.config.direction import Direction
from nmt.config.job import Job
from nmt.config.keys import with_values
from nmt.config.nodes import Config
from nmt.config.schema import validated
from nmt.data.module import StepData
from nmt.files import check_unlocked
from nmt.paths import cache_folder, check_folder, check_writable
from nmt.ranks import rank
from nmt.runs.directory import RunDirectory
from nmt.runs.record import training_record
from nmt.text import TokenizerPair
from nmt.training.extensions import check_extensions
from nmt.training.kind import ModelT, TrainingKind
from nmt.training.limits import steps_of_training
from nmt.training.machine import choose_machine, faster_precision, quiet
from nmt.training.origin import SettingsT
from nmt.training.resume import check_corpora, check_epochs_left, last_checkpoint, same_steps, stored_run
from nmt.training.start_from import inherited_tokenizers, weights_record
from nmt.training.task import TrainingTask

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Prepared(Generic[SettingsT, ModelT]):
    """A run that is ready to train."""

    run: RunDirectory
    state: tuple[bytes, ...]
    """The state of the run directory before the preparation; if it has changed since, another command has written."""
    config: Config
    """The configuration that the run stores."""
    settings: SettingsT
    """The same configuration, validated."""
    direction: Direction | None
    """None for masked pretraining, which has one vocabulary and no translation."""
    tokenizers: TokenizerPair
    model: ModelT
    task: TrainingTask
    """What a step computes."""
    validations: Sequence[Callback]
    """Callbacks for what a validation does besides computing the loss, such as BLEU."""
    data: StepData
    max_steps: int
    """The smaller of trainer.max_steps and the number of steps in trainer.max_epochs; NO_LIMIT if neither is set."""
    checkpoint: Path | None
    """The checkpoint to resume from; None to begin at the first step."""
    processes: int
    """The number of training processes."""
    record: Config
    """The contents of metrics.json until training ends."""
    is_new: bool
    """Whether the run directory is cleared first."""
    changes: Mapping[str, Any]
    """The settings, by key, that replaced others to save memory; empty unless a first attempt ran out of it."""
    in_sweep: bool

    def store(self) -> None:
        """Before the first step, writes the files that are needed for resuming and by other commands."""
        if self.is_new:
            self.run.clear()
        try:
            self.run.write_config(self.config)
            self.run.write_tokenizers(self.tokenizers, self.direction)
            self.run.write_metrics(self.record)
        except OSError:
            # Otherwise the same command could not be run again.
            if self.is_new:
                self.run.clear()
            raise

    def complete(self, result: Config, scores: Config) -> None:
        """Writes the final metrics.json: `result` is what training adds to it, and `scores` are those of the model."""
        self.run.write_metrics({**self.record, **result, "finished": True, "scores": scores})


def run_folder(job: Job[Any]) -> Path:
    """The folder of a job's run: run_dir, or its folder in the sweep."""
    return Path(job.settings.run_dir if job.sweep_dir is None else os.path.relpath(job.sweep_dir))


def may_shrink(given: Collection[str]) -> bool:
    """Whether a small corpus gets a smaller vocabulary: unless the command line sets the size, or an experiment."""
    return not {"tokenizer.size", "experiment"} & set(given)


def resumes_run(job: Job[Any], run: RunDirectory) -> bool:
    """Whether the job resumes its run: as it says or, with resume=auto, if the run has been started.

    Commands ask this once, because their own first attempt starts the run, too.
    """
    return run.started if job.settings.resume == "auto" else job.settings.resume


def prepare(
    job: Job[Any],
    run: RunDirectory,
    kind: TrainingKind[SettingsT, ModelT],
    *,
    resumes: bool,
    changes: Mapping[str, Any],
) -> Prepared[SettingsT, ModelT]:
    """Prepares a run to start or, with `resumes`, to resume.

    `changes` are the settings, by key, that replace others to save memory.

    Raises Mistake for invalid input, before the run directory is changed: values first, because checking them takes
    seconds, then the files, which may take minutes to read. Raises AlreadyFinished if the run is finished and the
    command does not ask for more.
    """
    is_leader = rank() == 0
    quiet(leader=is_leader)
    check_writable("run_dir", run.path)
    check_folder("cache_dir", job.settings.cache_dir)
    state = run.state()

    # The configuration is stored in the run directory, or given on the command line and completed by start_from.
    origin = stored_run(job, run, changes, kind.settings) if resumes else kind.new(job, run, changes)
    config, settings = origin.config, origin.settings
    kind.check_buildable(settings)
    check_extensions(settings)
    machine = choose_machine(settings.trainer)

    # Every line is read before anything is learned from the text, so that a damaged one is reported at once.
    cache = Path(str(job.settings.cache_dir))
    corpora = kind.corpora(settings, cache)
    if not resumes:
        # If there are changes, the run to replace is this command's own first attempt. Processes other than the leader
        # may come here after the leader has written to the folder.
        run.require_free(job.settings.overwrite or bool(changes) or not is_leader)
    if is_leader:
        check_unlocked(run.path)
    if resumes:
        # A step keeps its sentences, however many processes share them; only `changes` may divide them differently.
        batches = machine.processes * settings.trainer.accumulate_grad_batches
        batches = batches if changes else origin.metrics.get("batches_a_step", batches)
        config = same_steps(config, batches, machine.processes)
        settings = validated(kind.settings, config)
    hashes = corpora.hashes(cache)
    check_corpora(origin.metrics.get("corpora", {}), hashes)

    cache = cache_folder(job.settings.cache_dir)
    corpora = corpora.plain(cache)
    start, checkpoint = origin.start, None
    if resumes:
        checkpoint = last_checkpoint(run, origin.finished)
        # A checkpoint contains all weights, and the run that start_from names may no longer exist.
        start = None if checkpoint else kind.start(settings, run)

    # Tokenizers: the run's own, those of the run it starts from, or new ones.
    if origin.metrics:
        tokenizers = run.tokenizers(kind.direction(settings), origin.metrics, settings.tokenizer.tone_marks)
    elif start is not None:
        logger.info("The tokenizers come from %s", start.directory.path)
        tokenizers = inherited_tokenizers(start, kind.direction(settings))
        if start.directory.dictionary_file.exists():
            logger.info(
                "%s is not copied, because the new training text may teach its words: copy it to %s after training if "
                "you want to keep it",
                start.directory.dictionary_file,
                run.path,
            )
    else:
        # A resumed run comes here if it was killed while it wrote its first files; its configuration has the size that
        # its corpus supports.
        smaller = not resumes and may_shrink(job.given)
        tokenizers = corpora.learn_tokenizers(settings, cache, smaller=smaller)
        if settings.tokenizer.size not in (None, tokenizers.source.size):
            config = with_values(config, {"tokenizer.size": tokenizers.source.size})
            settings = validated(kind.settings, config)

    # This seeds torch and draws the initial weights, so nothing above it may depend on torch's random numbers.
    model = kind.model(settings, tokenizers, start)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    if not resumes and (faster := faster_precision(settings.trainer, machine.device, parameters)):
        logger.info("This CPU trains faster, and equally well, with trainer.precision=%s", faster)
    examples = corpora.examples(settings, tokenizers, cache)
    pairs = examples.training
    max_steps = steps_of_training(settings, pairs.lengths, pairs.mixing, machine.processes)
    kind.check_lengths(model, examples)
    if origin.finished:
        check_epochs_left(run.path, origin.metrics, max_steps)
    data = StepData(
        pairs,
        examples.validation,
        seed=settings.seed,
        batch_tokens=settings.batching.batch_tokens,
        max_steps=max_steps,
        accumulate=settings.trainer.accumulate_grad_batches,
        workers=settings.batching.workers,
        collate=examples.collate,
    )
    return Prepared(
        run=run,
        state=state,
        config=config,
        settings=settings,
        direction=kind.direction(settings),
        tokenizers=tokenizers,
        model=model,
        task=kind.task(settings, model),
        validations=kind.validations(run, settings, tokenizers, model, examples),
        data=data,
        max_steps=max_steps,
        checkpoint=checkpoint,
        processes=machine.processes,
        record={
            **training_record(settings, kind.direction(settings), tokenizers, model, machine.processes, hashes),
            **weights_record(start, origin.metrics),
            **origin.record(job.command, config),
        },
        is_new=not resumes,
        changes=changes,
        in_sweep=job.sweep_dir is not None,
    )
