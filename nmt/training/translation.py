"""What training a translation model reads, builds and computes."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch.callbacks import Callback

from nmt.config.direction import Direction
from nmt.config.job import Job
from nmt.config.keys import with_values
from nmt.config.nodes import make
from nmt.config.schema import RunSettings, validated
from nmt.config.trusted import check_storable
from nmt.data.batch import collate
from nmt.data.corpus import (
    check_files,
    check_no_table,
    corpus_hashes,
    file_pair,
    matching_prefixes,
    read_pairs,
    text_file,
)
from nmt.data.dataset import CorpusReport, TrainingData, encode_pairs, training_dataset
from nmt.data.detokenized import detokenized
from nmt.data.documents import check_documents, document_file, read_documents
from nmt.data.drawn_pairs import Draw, DrawnPairs, SubwordSampling
from nmt.data.example import Example
from nmt.data.filters import Filters
from nmt.data.known_files import known_digest
from nmt.data.plan import Mixing
from nmt.data.table_corpora import is_table, split_table
from nmt.data.unicode_noise import UnicodeNoise
from nmt.data.vocabulary import learned_tokenizers
from nmt.errors import Mistake
from nmt.models import DocumentModel, Seq2Seq, VocabularySizes
from nmt.runs.directory import RunDirectory
from nmt.runs.encoder import LoadedEncoder
from nmt.runs.load import LoadedRun, build_model, composed_model
from nmt.runs.reading import context_window
from nmt.text import TokenizerPair
from nmt.training.buildable import check_translation
from nmt.training.kind import Corpora, Examples, TrainingKind
from nmt.training.origin import ConfigOrigin, PretrainedRun, stored_keys
from nmt.training.start_from import check_same, inherited, pretrained_run, take_weights
from nmt.training.task import TranslationTask, build_task
from nmt.training.validation import translation_validations

logger = logging.getLogger(__name__)


class Translation(TrainingKind[RunSettings, Seq2Seq]):
    """Training a translation model on pairs of sentences."""

    settings = RunSettings

    def new(self, job: Job[Any], run: RunDirectory, changes: Mapping[str, Any]) -> ConfigOrigin[RunSettings]:
        asked = stored_keys(job.config)
        start = self.start(job.settings, run)
        config = with_values(asked if start is None else inherited(asked, job.given, start), changes)
        settings = validated(RunSettings, config)
        # A resumed run reads the corpora that match a pattern now, not those that match it later.
        train = matching_prefixes(settings.data.train, settings.direction)
        if train != settings.data.train:
            config = with_values(config, {"data.train": train})
            settings = validated(RunSettings, config)
            check_storable(config)
        if start is not None:
            check_same(start, settings, job.given)
        if settings.data.name not in ("sample", "documents") and "data" in job.given and "experiment" not in job.given:
            parts = {"schedule": "schedule", "number of steps": "trainer.max_steps"}
            if start is None:
                parts["vocabulary size"] = "tokenizer.size"
            if unset := [name for name, key in parts.items() if key not in job.given]:
                logger.warning(
                    "These settings come from experiment=sample, which is meant for the embedded corpus: %s. Choose "
                    "another experiment=, or set experiment=none to get the general defaults.",
                    ", ".join(unset),
                )
        return ConfigOrigin(config, settings, original=asked, start=start)

    def start(self, settings: RunSettings, run: RunDirectory) -> PretrainedRun | None:
        return pretrained_run(settings, run.path)

    def trial_model(self, settings: RunSettings) -> Seq2Seq:
        return composed_model(settings.model, VocabularySizes(8, 8, joint=False), settings.context.model)

    def check_choices(self, settings: RunSettings, model: Seq2Seq) -> None:
        check_translation(settings, model)

    def direction(self, settings: RunSettings) -> Direction:
        return settings.direction

    def corpora(self, settings: RunSettings, cache_dir: Path) -> "ParallelCorpora":
        corpora = parallel_corpora(settings)
        for prefix in corpora.held_out:
            check_no_table(prefix, corpora.direction)
        check_files(corpora.prefixes, corpora.direction, cache_dir)
        check_boundaries(settings, cache_dir)
        return corpora

    def model(self, settings: RunSettings, tokenizers: TokenizerPair, start: PretrainedRun | None) -> Seq2Seq:
        torch.manual_seed(settings.seed)
        model = build_model(settings.model, tokenizers, settings.context.model)
        if start is None or isinstance(start, LoadedEncoder):
            # The gates of hierarchical attention keep their own initial bias.
            make(settings.initializer)(model.sentence if isinstance(model, DocumentModel) else model)
        if start is not None:
            take_weights(start, model)
        return model

    def check_lengths(self, model: Seq2Seq, examples: Examples) -> None:
        pairs, valid = examples.training, examples.validation
        # Only sentences that become part of the source make it longer; a document model reads them one by one.
        training = pairs.lengths if pairs.window.joined else pairs.training.lengths
        lengths = {
            "training": training.max(axis=0).tolist(),
            "validation": [max(len(pair.source) for pair in valid) + 1, max(len(pair.target) for pair in valid) + 1],
        }
        for split, (source, target) in lengths.items():
            for side, length, most in (("source", source, model.max_source), ("target", target, model.max_target)):
                if most is not None and length > most:
                    raise Mistake(
                        f"The longest {side} sentence of the {split} data has {length} pieces including EOS, but "
                        f"scorer=location has weights for only {most}: set its max_length to {length} or more, or "
                        "leave out long sentences."
                    )

    def task(self, settings: RunSettings, model: Seq2Seq) -> TranslationTask:
        return build_task(settings, model)

    def validations(
        self, run: RunDirectory, settings: RunSettings, tokenizers: TokenizerPair, model: Seq2Seq, examples: Examples
    ) -> Sequence[Callback]:
        return translation_validations(LoadedRun(run, settings, tokenizers, model, model.device), examples.validation)


@dataclass(frozen=True)
class ParallelCorpora(Corpora[RunSettings]):
    """The corpora of a run, as prefixes of aligned files or names of tables; see nmt.data.corpus."""

    direction: Direction
    train: list[str]
    valid: str
    held_out: list[str]
    """The validation corpus and those of all test splits, whose sentences the overlap filter drops from training."""
    detokenize: list[str]
    """The corpora that are read as plain text."""
    has_context: bool
    """Whether the model reads earlier sentences, whose documents PREFIX.doc names."""

    @property
    def prefixes(self) -> list[str]:
        """All corpora of the run."""
        return [*self.train, *self.held_out]

    def hashes(self, cache_dir: Path) -> dict[str, str]:
        hashes = corpus_hashes(self.prefixes, self.direction, cache_dir)
        if self.has_context:
            files = {prefix: document_file(prefix, self.direction) for prefix in self.prefixes}
            hashes |= {f"{prefix}.doc": known_digest(path, cache_dir) for prefix, path in files.items() if path}
        return hashes

    def plain(self, cache_dir: Path) -> "ParallelCorpora":
        """The same corpora as pairs of files, with plain-text copies of those named in data.detokenize.

        The held-out corpora are kept as they are too, so that the overlap filter finds their sentences in both forms.
        Warns about names in data.detokenize that are neither corpora of the run nor files.
        """
        for prefix in self.detokenize:
            files = file_pair(prefix, self.direction)
            if prefix not in self.prefixes and not any(path.is_file() for path in files):
                logger.warning(
                    "data.detokenize contains '%s', which is neither a corpus of this run nor a file; it has no "
                    "effect. The corpora are %s.",
                    prefix,
                    ", ".join(self.prefixes),
                )
        held_out = [self._plain(prefix, cache_dir) for prefix in self.held_out]
        return replace(
            self,
            train=[self._plain(prefix, cache_dir) for prefix in self.train],
            valid=self._plain(self.valid, cache_dir),
            held_out=list(dict.fromkeys([*self.held_out, *held_out])),
        )

    def _plain(self, prefix: str, cache_dir: Path) -> str:
        files = split_table(text_file(prefix), self.direction, cache_dir) if is_table(prefix) else prefix
        return detokenized(files, self.direction, cache_dir) if prefix in self.detokenize else files

    def learn_tokenizers(self, settings: RunSettings, cache_dir: Path, *, smaller: bool) -> TokenizerPair:
        return learned_tokenizers(self.train, self.direction, settings.tokenizer, cache_dir, smaller)

    def training_rows(
        self, settings: RunSettings, tokenizers: TokenizerPair, cache_dir: Path
    ) -> tuple[TrainingData, CorpusReport]:
        """The filtered and tokenized training pairs, and what the filters dropped."""
        return training_dataset(
            self.train,
            self.direction,
            tokenizers,
            Filters(**settings.filters.model_dump()),
            self.held_out,
            cache_dir,
            documents=self.has_context,
        )

    def examples(self, settings: RunSettings, tokenizers: TokenizerPair, cache_dir: Path) -> Examples:
        """The filtered and tokenized pairs.

        Raises Mistake if a sentence and those before it are too long for a batch.
        """
        window = context_window(settings)
        rows, report = self.training_rows(settings, tokenizers, cache_dir)
        logger.info("Training data: %s", report)
        documents = read_documents(self.valid, self.direction) if window.sentences else None
        valid = encode_pairs(read_pairs(self.valid, self.direction), tokenizers, window, documents)
        changes = list[Callable[[Draw, Example], Example]]()
        longest_sides = rows.lengths.max(axis=0).tolist()
        # The noise comes first, so that its characters are segmented at random as well.
        if settings.unicode_noise:
            changes.append(UnicodeNoise(tokenizers, settings.unicode_noise, seed=settings.seed, longest=longest_sides))
        if settings.subword_sampling is not None:
            changes.append(
                SubwordSampling(tokenizers, settings.subword_sampling, seed=settings.seed, longest=longest_sides)
            )
        mixing = Mixing(tuple(rows.parts), settings.data.sampling_temperature, settings.data.concat_prob)
        pairs = DrawnPairs(rows, changes, mixing, window)
        longest, budget = int(pairs.lengths.max()), settings.batching.batch_tokens
        if window.sentences and longest > budget >= rows.lengths.max():
            raise Mistake(
                f"A sentence and the {window.sentences} before it together have up to {longest} tokens, more than "
                f"batching.batch_tokens={budget}: raise batching.batch_tokens to {longest}, or lower context.sentences."
            )
        return Examples(pairs, valid, partial(collate, always_context=settings.context.model is not None))


def parallel_corpora(settings: RunSettings) -> ParallelCorpora:
    """The corpora that a configuration names, without patterns."""
    data = settings.data
    return ParallelCorpora(
        settings.direction,
        data.train,
        data.valid,
        held_out=list(data.held_out.values()),
        detokenize=data.detokenize,
        has_context=settings.context.sentences > 0,
    )


def check_boundaries(settings: RunSettings, cache_dir: Path) -> None:
    """For a model that reads context, raises Mistake if a PREFIX.doc is damaged or no training corpus has one."""
    if not settings.context.sentences:
        return
    data = settings.data
    has_documents = {
        prefix: check_documents(prefix, settings.direction, cache_dir)
        for prefix in (*data.train, *data.held_out.values())
    }
    if not any(has_documents[prefix] for prefix in data.train):
        raise Mistake(
            f"context.sentences is {settings.context.sentences}, but no training corpus has document boundaries: "
            f"add {data.train[0]}.doc, which names the document that each line belongs to, or set context=none."
        )
    if not has_documents[data.valid]:
        logger.warning("%s has no document boundaries (PREFIX.doc), so validation uses no context.", data.valid)
