"""What masked pretraining of an encoder reads, builds and computes."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from nmt.config.job import Job
from nmt.config.keys import with_values
from nmt.config.nodes import make
from nmt.config.schema import EncoderSettings, validated
from nmt.data.corpus import text_file
from nmt.data.known_files import known_digest
from nmt.data.masking import MaskedLines, Masking, collate_masked
from nmt.data.monolingual import LineFilters, Split, encoded_lines, split_lines, training_lines
from nmt.data.plan import Mixing
from nmt.data.vocabulary import learned_tokenizer
from nmt.errors import Mistake
from nmt.models import MaskedTransformer, VocabularySizes
from nmt.runs.directory import RunDirectory
from nmt.runs.encoder import build_encoder
from nmt.text import TokenizerPair
from nmt.text.tone_marks import tone_marks_of_file
from nmt.training.kind import Corpora, Examples, TrainingKind
from nmt.training.masked_task import MaskedTask, build_masked_task
from nmt.training.origin import ConfigOrigin, PretrainedRun, stored_keys

logger = logging.getLogger(__name__)


class MaskedPretraining(TrainingKind[EncoderSettings, MaskedTransformer]):
    """Pretraining an encoder on text without translations (Devlin et al. 2019)."""

    settings = EncoderSettings

    def new(self, job: Job[Any], run: RunDirectory, changes: Mapping[str, Any]) -> ConfigOrigin[EncoderSettings]:
        asked = stored_keys(job.config)
        config = with_values(asked, changes)
        return ConfigOrigin(config, validated(EncoderSettings, config), original=asked)

    def trial_model(self, settings: EncoderSettings) -> MaskedTransformer:
        model: MaskedTransformer = make(settings.model, MaskedTransformer)(vocabulary=VocabularySizes(8, 8, joint=True))
        return model

    def corpora(self, settings: EncoderSettings, cache_dir: Path) -> "TextFiles":
        data = settings.data
        names = {"train": data.train, "valid": data.valid or [], "exclude": data.exclude, "vocabulary": data.vocabulary}
        files = {key: [text_file(name) for name in named] for key, named in names.items()}
        style, read = settings.tokenizer.tone_marks, files["train"] + files["valid"] + files["vocabulary"]
        if style is not None and not any(tone_marks_of_file(path, style) for path in read):
            raise Mistake(
                f"tokenizer.tone_marks={style} is a style of Vietnamese, but no file of data.train, data.valid or "
                "data.vocabulary is Vietnamese (*.vi): set tokenizer.tone_marks=null, or rename the files."
            )
        return TextFiles(
            names=[name for named in names.values() for name in named],
            paths=[path for paths in files.values() for path in paths],
            vocabulary=[*dict.fromkeys(files["train"] + files["vocabulary"])],
            split=split_lines(
                files["train"],
                files["valid"] or None,
                data.valid_lines,
                files["exclude"],
                tone_marks=settings.tokenizer.tone_marks,
                cache_dir=cache_dir,
            ),
        )

    def model(
        self, settings: EncoderSettings, tokenizers: TokenizerPair, start: PretrainedRun | None
    ) -> MaskedTransformer:
        torch.manual_seed(settings.seed)
        model = build_encoder(settings.model, tokenizers)
        make(settings.initializer)(model)
        return model

    def check_lengths(self, model: MaskedTransformer, examples: Examples) -> None:
        if not examples.validation:
            raise Mistake("Every validation line is empty: raise data.valid_lines, or name other files in data.valid.")
        lengths = {
            "training": int(examples.training.lengths[:, 0].max()),
            "validation": max(len(line.source) + 1 for line in examples.validation),
        }
        for split, length in lengths.items():
            if model.max_source is not None and length > model.max_source:
                raise Mistake(
                    f"The longest line of the {split} text has {length} pieces including EOS, but scorer=location has "
                    f"weights for only {model.max_source}: set its max_length to {length} or more, or leave out long "
                    "lines."
                )

    def task(self, settings: EncoderSettings, model: MaskedTransformer) -> MaskedTask:
        return build_masked_task(settings, model)


@dataclass(frozen=True)
class TextFiles(Corpora[EncoderSettings]):
    """Text files of a run, and their lines for training and validation."""

    names: list[str]
    """All files, as the configuration names them."""
    paths: list[Path]
    vocabulary: list[Path]
    """The files that the tokenizer is learned from, including held-out lines."""
    split: Split

    def hashes(self, cache_dir: Path) -> dict[str, str]:
        return {name: known_digest(path, cache_dir) for name, path in zip(self.names, self.paths, strict=True)}

    def learn_tokenizers(self, settings: EncoderSettings, cache_dir: Path, *, smaller: bool) -> TokenizerPair:
        """One tokenizer for both sides, always of the given size, because the models to train from it will have it."""
        tokenizer = learned_tokenizer(self.vocabulary, settings.tokenizer, cache_dir)
        return TokenizerPair(tokenizer, tokenizer)

    def examples(self, settings: EncoderSettings, tokenizers: TokenizerPair, cache_dir: Path) -> Examples:
        """The filtered and tokenized lines, in which pieces are masked."""
        tokenizer = tokenizers.source
        filters = LineFilters(**settings.filters.model_dump())
        rows, report = training_lines(self.split, tokenizer, filters, cache_dir)
        logger.info("Training data: %s", report)
        mixing = Mixing(tuple(rows.parts), settings.data.sampling_temperature)
        masking = Masking(tokenizer.size, **settings.masking.model_dump())
        # The same pieces are masked in every validation, and in every run on this text, whatever its seed.
        lines = encoded_lines(self.split.valid, tokenizer)
        valid = [masking(index, ids, f"valid/{index}") for index, ids in enumerate(lines)]
        return Examples(MaskedLines(rows, masking, settings.seed, mixing), valid, collate_masked)
