"""How masked pretraining begins, and how a stopped run resumes."""

import logging
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import torch

from nmt.config.job import Job
from nmt.config.keys import value_at, with_values
from nmt.config.nodes import Config, make
from nmt.config.schema import EncoderSettings, PretrainSettings, validated
from nmt.data.batch import Example
from nmt.data.cache import file_digest
from nmt.data.corpus import text_file
from nmt.data.dataset import TrainingData
from nmt.data.masking import MaskedLines, Masking, collate_masked
from nmt.data.module import TranslationData
from nmt.data.monolingual import LineFilters, Split, encoded_lines, split_lines, training_lines
from nmt.data.plan import Mixing
from nmt.data.vocabulary import learned_tokenizer
from nmt.errors import Mistake
from nmt.files import cache_folder, check_unlocked
from nmt.models import MaskedTransformer, VocabularySizes
from nmt.runs.directory import EncoderDirectory
from nmt.runs.encoder import build_encoder
from nmt.runs.record import training_record
from nmt.text import Tokenizer, TokenizerPair
from nmt.training.begin import stored_keys
from nmt.training.machine import choose_machine, faster_precision, rank
from nmt.training.masked_task import build_masked_task
from nmt.training.prepared import ADAPTED, Prepared, changed_command, steps_of_training
from nmt.training.resume import (
    check_corpora,
    check_epochs_left,
    last_checkpoint,
    resumed_command,
    same_steps,
    stored_run,
)

logger = logging.getLogger(__name__)


def begin_pretraining(
    job: Job[PretrainSettings], run: EncoderDirectory, changes: Mapping[str, Any]
) -> Prepared[EncoderSettings, MaskedTransformer]:
    """Prepares a new run with the configuration given on the command line and with `changes`, which save memory.

    Raises Mistake for invalid input, before the run directory is changed.
    """
    asked = stored_keys(job.config)
    config = with_values(asked, changes)
    settings = validated(EncoderSettings, config)
    check_encoder_buildable(settings)
    machine = choose_machine(settings.trainer)
    text = read_text(settings)
    # If there are changes, the run to replace is this command's own first attempt.
    run.require_free(job.settings.overwrite or bool(changes) or rank() != 0)
    if rank() == 0:
        check_unlocked(run.path)
    if faster := faster_precision(settings.trainer, machine.device):
        logger.info("This CPU trains faster, and equally well, with trainer.precision=%s", faster)
    cache = cache_folder(job.settings.cache_dir)
    tokenizer = text.tokenizer(settings, cache)
    prepared = prepared_pretraining(run, config, settings, text, tokenizer, machine.processes, cache)
    command = changed_command(job.command, asked, config)
    record = {**prepared.record, "command": command, "asked": {key: value_at(asked, key) for key in ADAPTED}}
    return replace(prepared, record=record)


def resume_pretraining(
    job: Job[PretrainSettings], run: EncoderDirectory, changes: Mapping[str, Any]
) -> Prepared[EncoderSettings, MaskedTransformer]:
    """Prepares a run to resume from its last checkpoint, or to start over if it has no checkpoint.

    Raises Mistake for invalid input, before the run directory is changed.
    """
    found = stored_run(job, run, changes, EncoderSettings)
    config, settings, metrics = found.config, found.settings, found.metrics
    check_encoder_buildable(settings)
    machine = choose_machine(settings.trainer)
    text = read_text(settings)
    if rank() == 0:
        check_unlocked(run.path)
    mine = machine.processes * settings.trainer.accumulate_grad_batches
    config = same_steps(config, mine if changes else metrics.get("batches_a_step", mine), machine.processes)
    settings = validated(EncoderSettings, config)
    check_corpora(metrics.get("corpora", {}), text.hashes)
    cache = cache_folder(job.settings.cache_dir)
    checkpoint = last_checkpoint(run, found.finished)
    # If there are no metrics, the run was killed while its first files were being written.
    tokenizer = run.tokenizers(None, metrics).source if metrics else text.tokenizer(settings, cache)
    prepared = prepared_pretraining(run, config, settings, text, tokenizer, machine.processes, cache)
    if found.finished:
        check_epochs_left(run.path, metrics, prepared.max_steps)
    record = {
        **prepared.record,
        **resumed_command(job, found.stored, config, metrics),
    }
    return replace(prepared, checkpoint=checkpoint, record=record, is_new=False)


class PretrainingText(NamedTuple):
    """The text files of a run, by their key under data, and their lines for training and validation."""

    files: dict[str, list[Path]]
    split: Split
    hashes: dict[str, str]
    """SHA-256 of each file, by its name in the configuration."""

    def tokenizer(self, settings: EncoderSettings, cache_dir: Path) -> Tokenizer:
        """The tokenizer, learned from the files in data.train and data.vocabulary, including held-out lines."""
        files = [*dict.fromkeys(self.files["train"] + self.files["vocabulary"])]
        kind, size = settings.tokenizer.kind, settings.tokenizer.size
        return learned_tokenizer(files, kind=kind, size=size, cache_dir=cache_dir)


def read_text(settings: EncoderSettings) -> PretrainingText:
    """Finds the text files of a run and splits their lines.

    Raises Mistake for a missing file, and for one that is not text or has too few lines.
    """
    data = settings.data
    names = {"train": data.train, "valid": data.valid or [], "exclude": data.exclude, "vocabulary": data.vocabulary}
    files = {key: [text_file(name) for name in named] for key, named in names.items()}
    split = split_lines(files["train"], files["valid"] or None, data.valid_lines, files["exclude"])
    hashes = {
        name: file_digest(path) for key, named in names.items() for name, path in zip(named, files[key], strict=True)
    }
    return PretrainingText(files, split, hashes)


def prepared_pretraining(
    run: EncoderDirectory,
    config: Config,
    settings: EncoderSettings,
    text: PretrainingText,
    tokenizer: Tokenizer,
    processes: int,
    cache_dir: Path,
) -> Prepared[EncoderSettings, MaskedTransformer]:
    """Prepares the model with initial weights, the batches and the task of a new or resumed run.

    Raises Mistake for sentences that the model cannot read or that cannot be put into batches.
    """
    tokenizers = TokenizerPair(tokenizer, tokenizer)
    torch.manual_seed(settings.seed)
    model = build_encoder(settings.model, tokenizers)
    make(settings.initializer)(model)
    rows, report = training_lines(text.split, tokenizer, LineFilters(**settings.filters.model_dump()), cache_dir)
    logger.info("Training data: %s", report)
    mixing = Mixing(tuple(rows.parts), settings.data.sampling_temperature)
    max_steps = steps_of_training(settings, rows.lengths, mixing, processes)
    masking = Masking(tokenizer.size, **settings.masking.model_dump())
    # The same pieces are masked in every validation, and in every run on this text, whatever its seed.
    lines = encoded_lines(text.split.valid, tokenizer)
    valid = [masking(index, ids, f"valid/{index}") for index, ids in enumerate(lines)]
    if not valid:
        raise Mistake("Every validation line is empty: raise data.valid_lines, or name other files in data.valid.")
    check_line_lengths(model, rows, valid)
    data = TranslationData(
        MaskedLines(rows, masking, settings.seed, mixing),
        valid,
        seed=settings.seed,
        batch_tokens=settings.batching.batch_tokens,
        max_steps=max_steps,
        accumulate=settings.trainer.accumulate_grad_batches,
        workers=settings.batching.workers,
        collate=collate_masked,
    )
    return Prepared(
        run,
        config,
        settings,
        None,
        tokenizers,
        model,
        build_masked_task(settings, model),
        (),
        data,
        max_steps,
        None,
        processes,
        training_record(settings, None, tokenizers, model, processes, text.hashes),
        is_new=True,
    )


def check_line_lengths(model: MaskedTransformer, training: TrainingData, valid: list[Example]) -> None:
    """Raises Mistake if a sentence is longer than the model can read."""
    lengths = {"training": int(training.lengths[:, 0].max()), "validation": max(len(line.source) + 1 for line in valid)}
    for split, length in lengths.items():
        if model.max_source is not None and length > model.max_source:
            raise Mistake(
                f"The longest line of the {split} text has {length} pieces including EOS, but scorer=location has "
                f"weights for only {model.max_source}: set its max_length to {length} or more, or leave out long lines."
            )


def check_encoder_buildable(settings: EncoderSettings) -> None:
    """Builds the model (on the meta device), initial weights, optimizer and schedule once, and discards them.

    Raises Mistake for the first invalid value, so that it is reported before the text is read.
    """
    with torch.device("meta"):
        model = make(settings.model)(vocabulary=VocabularySizes(8, 8, joint=True))
        make(settings.initializer)(model)
    build_masked_task(settings, model).configure_optimizers()
