"""A run that is ready to train, and the preparation that new and resumed runs share."""

import logging
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

import numpy as np
import safetensors.torch
import torch
from jaxtyping import Int
from lightning.pytorch.callbacks import Callback

from nmt.config.direction import Direction
from nmt.config.keys import value_at
from nmt.config.messages import written
from nmt.config.nodes import Config, make
from nmt.config.schema import LoopSettings, RunSettings
from nmt.data.batch import Example, collate
from nmt.data.cache import file_digest
from nmt.data.corpus import file_pair, read_pairs
from nmt.data.dataset import encode_pairs, training_dataset
from nmt.data.detokenized import detokenized
from nmt.data.documents import check_documents, read_documents
from nmt.data.drawn_pairs import DrawnPairs, SubwordSampling
from nmt.data.filters import Filters
from nmt.data.module import TranslationData
from nmt.data.plan import Mixing, plan_epoch
from nmt.errors import Mistake
from nmt.models import DocumentModel, Seq2Seq
from nmt.models.base import Attending
from nmt.runs.directory import RunDirectory
from nmt.runs.encoder import LoadedEncoder, build_encoder, load_encoder
from nmt.runs.load import LoadedRun, build_model, context_window, load_run
from nmt.text import TokenizerPair
from nmt.training.progress import NO_LIMIT
from nmt.training.task import TrainingTask

logger = logging.getLogger(__name__)

LENGTHS = ("trainer.max_steps", "trainer.max_epochs", "trainer.max_time", "validation.patience")
MACHINE = ("trainer.devices", "trainer.num_nodes", "trainer.strategy", "trainer.accelerator")
"""The keys that determine where to train. The batches of a step are divided among the processes."""
MAY_CHANGE = (*LENGTHS, *MACHINE, "max_skipped_steps")
BATCHES = ("batching.batch_tokens", "trainer.accumulate_grad_batches")
ADAPTED = (*BATCHES, "tokenizer.size")
"""The keys that a run may change by itself to save memory, or to suit the number of processes or a small corpus."""


Own = TypeVar("Own", bound=LoopSettings)
Net = TypeVar("Net", bound=Attending)


@dataclass(frozen=True)
class Prepared(Generic[Own, Net]):
    """What the training loop needs, as prepared by nmt.training.begin, resume or pretraining."""

    run: RunDirectory
    config: Config
    """The configuration that the run stores."""
    settings: Own
    """The same configuration, validated."""
    direction: Direction | None
    """None for masked pretraining, which has one vocabulary and no translation."""
    tokenizers: TokenizerPair
    model: Net
    task: TrainingTask
    """What a step computes."""
    validations: Sequence[Callback]
    """Callbacks for what a validation does besides computing the loss, such as BLEU."""
    data: TranslationData
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


class Corpora(NamedTuple):
    """The prefixes of a run's corpora; those named in data.detokenize are replaced by plain-text copies."""

    train: list[str]
    valid: str
    excluded: list[str]
    """The held-out corpora, both unchanged and as plain text, for the overlap filter."""


def plain_corpora(settings: RunSettings, cache_dir: Path) -> Corpora:
    """The corpora of a run. Warns about names in data.detokenize that are neither its corpora nor files."""
    data, direction = settings.data, settings.direction
    held_out = list(data.held_out.values())
    known = (*data.train, *held_out)
    for prefix in data.detokenize:
        if prefix not in known and not any(path.is_file() for path in file_pair(prefix, direction)):
            logger.warning(
                "data.detokenize contains '%s', which is neither a corpus of this run nor a file; it has no effect. "
                "The corpora are %s.",
                prefix,
                ", ".join(known),
            )

    def plain(prefix: str) -> str:
        return detokenized(prefix, direction, cache_dir) if data.becomes_plain(prefix) else prefix

    excluded = list(dict.fromkeys([*held_out, *map(plain, held_out)]))
    return Corpora([plain(prefix) for prefix in data.train], plain(data.valid), excluded)


def check_boundaries(settings: RunSettings) -> None:
    """For a model that reads context, raises Mistake if a PREFIX.doc is damaged or no training corpus has one."""
    if not settings.context.sentences:
        return
    data = settings.data
    found = {prefix: check_documents(prefix, settings.direction) for prefix in (*data.train, *data.held_out.values())}
    if not any(found[prefix] for prefix in data.train):
        raise Mistake(
            f"context.sentences is {settings.context.sentences}, but no training corpus has document boundaries: "
            f"add {data.train[0]}.doc, which names the document that each line belongs to, or set context=none."
        )
    if not found[data.valid]:
        logger.warning("%s has no document boundaries (PREFIX.doc), so validation uses no context.", data.valid)


def filters_of(settings: RunSettings) -> Filters:
    """The filters of the training pairs."""
    return Filters(**settings.filters.model_dump())


def prepare_data(
    settings: RunSettings, corpora: Corpora, tokenizers: TokenizerPair, model: Seq2Seq, processes: int, cache_dir: Path
) -> tuple[TranslationData, int]:
    """The training and validation batches, and the number of training steps.

    Raises Mistake for sentences that the model cannot read or that cannot be put into batches.
    """
    window = context_window(settings)
    rows, report = training_dataset(
        corpora.train,
        settings.direction,
        tokenizers,
        filters_of(settings),
        corpora.excluded,
        cache_dir,
        documents=window.sentences > 0,
    )
    logger.info("Training data: %s", report)
    mixing = Mixing(tuple(rows.parts), settings.data.sampling_temperature, settings.data.concat_prob)
    documents = read_documents(corpora.valid, settings.direction) if window.sentences else None
    valid = encode_pairs(read_pairs(corpora.valid, settings.direction), tokenizers, window, documents)
    sampling = None
    if settings.subword_sampling is not None:
        longest = rows.lengths.max(axis=0).tolist()
        sampling = SubwordSampling(tokenizers, settings.subword_sampling, seed=settings.seed, longest=longest)
    pairs = DrawnPairs(rows, sampling, mixing, window)
    longest, budget = int(pairs.lengths.max()), settings.batching.batch_tokens
    if window.sentences and longest > budget >= rows.lengths.max():
        raise Mistake(
            f"A sentence and the {window.sentences} before it together have up to {longest} tokens, more than "
            f"batching.batch_tokens={budget}: raise batching.batch_tokens to {longest}, or lower context.sentences."
        )
    max_steps = steps_of_training(settings, pairs.lengths, mixing, processes)
    check_lengths(model, pairs.lengths if window.joined else rows.lengths, valid)
    data = TranslationData(
        pairs,
        valid,
        seed=settings.seed,
        batch_tokens=settings.batching.batch_tokens,
        max_steps=max_steps,
        accumulate=settings.trainer.accumulate_grad_batches,
        workers=settings.batching.workers,
        collate=partial(collate, always_context=isinstance(model, DocumentModel)),
    )
    return data, max_steps


def steps_of_training(
    settings: LoopSettings, lengths: Int[np.ndarray, "pairs 2"], mixing: Mixing, processes: int
) -> int:
    """The smaller of trainer.max_steps and the number of steps in trainer.max_epochs; NO_LIMIT if neither is set.

    Plans the first epoch in any case. Raises Mistake if the sentences cannot be put into batches.
    """
    trainer = settings.trainer
    limit = trainer.max_steps or NO_LIMIT
    budget, accumulate = settings.batching.batch_tokens, trainer.accumulate_grad_batches
    steps = 0
    for epoch in range(trainer.max_epochs or 1):
        steps += len(plan_epoch(settings.seed, epoch, lengths, budget, accumulate, processes, mixing).steps)
        if epoch == 0:
            logger.info("An epoch has %d steps", steps)
        if steps >= limit:
            break
    length = limit if trainer.max_epochs is None else min(steps, limit)
    if (decay := settings.schedule.get("steps")) and length < decay:
        logger.warning(
            "Training ends at step %d, but the learning rate decays over %d steps; to let it decay fully, start a new "
            "run with schedule.steps=%d.",
            length,
            decay,
            length,
        )
    return length


def check_lengths(model: Seq2Seq, training: Int[np.ndarray, "pairs 2"], valid: Sequence[Example]) -> None:
    """Raises Mistake if a training or validation sentence is longer than the model can read."""
    lengths = {
        "training": training.max(axis=0).tolist(),
        "validation": [max(len(each.source) for each in valid) + 1, max(len(each.target) for each in valid) + 1],
    }
    for split, (source, target) in lengths.items():
        for side, length, most in (("source", source, model.max_source), ("target", target, model.max_target)):
            if most is not None and length > most:
                raise Mistake(
                    f"The longest {side} sentence of the {split} data has {length} pieces including EOS, but "
                    f"scorer=location has weights for only {most}: set its max_length to {length} or more, or leave "
                    "out long sentences."
                )


def reached_limits(settings: LoopSettings, record: Config) -> list[str]:
    """The limits that a run has reached, except epochs, and the amounts used; `record` has the keys of metrics.json."""
    trainer, patience = settings.trainer, settings.validation.patience
    steps, seconds, validations = (
        record.get(key, 0) for key in ("steps", "wall_time_seconds", "validations_since_best")
    )
    reached = []
    if trainer.max_steps is not None and steps >= trainer.max_steps:
        reached.append(f"trainer.max_steps={trainer.max_steps} ({steps} steps)")
    if trainer.max_seconds is not None and seconds >= trainer.max_seconds:
        reached.append(f"trainer.max_time={trainer.max_time} ({seconds:.0f} seconds)")
    if validations >= patience:
        reached.append(f"validation.patience={patience} ({validations} validations since the best)")
    return reached


def finished_run(settings: RunSettings, own: Path) -> LoadedRun | LoadedEncoder | None:
    """The run that start_from names, for a new run in the folder `own`: a translation model or a pretrained encoder.

    Raises Mistake if it is not a finished run with the same direction.
    """
    name = settings.start_from
    if name is None:
        return None
    path = Path(name)
    if path.resolve() == own.resolve():
        raise Mistake(f"start_from={name} is also the run_dir, which would be overwritten: choose another run_dir.")
    if not path.is_dir():
        raise Mistake(f"start_from={name}: there is no such folder; use the run_dir of a finished run.")
    try:
        if RunDirectory(path).pretrained:
            return load_encoder(path, "cpu")
        run = load_run(path, "cpu")
    except Mistake as error:
        raise Mistake(f"start_from={name}: {error}") from error
    if run.direction != settings.direction:
        raise Mistake(
            f"start_from={name} translates {run.direction}, not {settings.direction}: set "
            f"direction={run.direction}, or choose another run."
        )
    return run


def start_weights(start: LoadedRun | LoadedEncoder | None, recorded: Config) -> Config:
    """The SHA-256 of the weights that a run starts from, or the one recorded in its metrics, if any."""
    if start is not None:
        return {"start_weights": file_digest(start.directory.weights)}
    return {key: value for key, value in recorded.items() if key == "start_weights"}


def initial_model(settings: RunSettings, tokenizers: TokenizerPair, start: LoadedRun | LoadedEncoder | None) -> Seq2Seq:
    """The model, with new weights or those of `start`. A pretrained encoder sets only its own part of the model."""
    torch.manual_seed(settings.seed)
    model = build_model(settings.model, tokenizers, settings.context.model)
    into = model
    if isinstance(model, DocumentModel) and start is not None and not isinstance(start.model, DocumentModel):
        into = model.sentence
    if start is None or isinstance(start, LoadedEncoder):
        # The gates of hierarchical attention keep their own initial bias.
        make(settings.initializer)(model.sentence if isinstance(model, DocumentModel) else model)
    if isinstance(start, LoadedEncoder):
        logger.info(
            "The encoder and the embeddings come from %s; initializer sets the other weights", start.directory.path
        )
        pretrained = build_encoder(start.settings.model, start.tokenizers)
        safetensors.torch.load_model(pretrained, start.directory.weights)
        # Not strict, because the file contains only the encoder's weights; they have the same names in the model.
        unexpected = into.load_state_dict(pretrained.state_dict(), strict=False).unexpected_keys
        if unexpected:
            raise Mistake(f"{start.directory.weights} has weights that the model lacks, such as {unexpected[0]}.")
    elif start is not None:
        logger.info("The weights come from %s; initializer has no effect", start.directory.path)
        safetensors.torch.load_model(into, start.directory.weights)
    return model


def changed_command(command: str, before: Config, after: Config) -> str:
    """A single command that gives the same result: the run's own command with the changed settings."""
    changed = {
        key: value_at(after, key) for key in (*MAY_CHANGE, *BATCHES) if value_at(after, key) != value_at(before, key)
    }
    kept = [word for word in shlex.split(command) if word.lstrip("+").split("=")[0] not in {*changed, "resume"}]
    given = [f"{key}={written(value)}" for key, value in changed.items()]
    # A schedule defined by the length of training keeps its original length.
    if "trainer.max_steps" in changed and (steps := value_at(after, "schedule.steps")) is not None:
        kept = [word for word in kept if not word.startswith("schedule.steps=")]
        given.append(f"schedule.steps={steps}")
    return shlex.join([*kept, *given])
