"""What the kinds of training, translation and masked pretraining, each read, build and compute.

The rest of their preparation is the same, and told once in nmt.training.preparation.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import torch
from lightning.pytorch.callbacks import Callback

from nmt.config.direction import Direction
from nmt.config.job import Job
from nmt.config.nodes import make
from nmt.data.drawn_pairs import DrawnPairs
from nmt.data.example import Example
from nmt.data.module import Collate
from nmt.models.base import Attending
from nmt.models.no_initial_weights import NoInitialWeights
from nmt.runs.directory import RunDirectory
from nmt.runs.memory import require_memory
from nmt.text import TokenizerPair
from nmt.training.origin import ConfigOrigin, PretrainedRun, SettingsT
from nmt.training.task import TrainingTask

ModelT = TypeVar("ModelT", bound=Attending)


class Examples(NamedTuple):
    """The tokenized sentences of a run, and how examples become a batch."""

    training: DrawnPairs
    validation: Sequence[Example]
    collate: Collate


class Corpora(ABC, Generic[SettingsT]):
    """The text files of a run, which exist and can be read."""

    @abstractmethod
    def hashes(self, cache_dir: Path) -> dict[str, str]:
        """SHA-256 of each file, by its name in the configuration."""

    def plain(self, cache_dir: Path) -> "Corpora[SettingsT]":
        """The same corpora as pairs of files, with copies of those that the configuration wants detokenized."""
        return self

    @abstractmethod
    def learn_tokenizers(self, settings: SettingsT, cache_dir: Path, *, smaller: bool) -> TokenizerPair:
        """The tokenizers learned from the training text.

        With `smaller`, a corpus that is too small for tokenizer.size may get a smaller vocabulary.
        """

    @abstractmethod
    def examples(self, settings: SettingsT, tokenizers: TokenizerPair, cache_dir: Path) -> Examples:
        """The filtered and tokenized sentences."""


class TrainingKind(ABC, Generic[SettingsT, ModelT]):
    """A kind of training; `settings` is the class of what its run directories store."""

    settings: type[SettingsT]

    @abstractmethod
    def new(self, job: Job[Any], run: RunDirectory, changes: Mapping[str, Any]) -> ConfigOrigin[SettingsT]:
        """The configuration of a new run, with `changes`, which save memory."""

    def start(self, settings: SettingsT, run: RunDirectory) -> PretrainedRun | None:
        """The finished run whose weights and tokenizers a run in the folder `run` starts from, if any."""
        return None

    def check_buildable(self, settings: SettingsT) -> None:
        """Builds the model (on the meta device), initial weights, optimizer and schedule once, and discards them.

        Raises Mistake for the first invalid value, so that it is reported before the text is read.
        """
        with torch.device("meta"), NoInitialWeights():
            model = self.trial_model(settings)
            require_memory(model)
            make(settings.initializer)(model)
        self.check_choices(settings, model)
        self.task(settings, model).configure_optimizers()

    @abstractmethod
    def trial_model(self, settings: SettingsT) -> ModelT:
        """The model with a tiny vocabulary: whether a model can be built does not depend on its size."""

    def check_choices(self, settings: SettingsT, model: ModelT) -> None:
        """Raises Mistake for a choice that does not fit the model."""

    def direction(self, settings: SettingsT) -> Direction | None:
        """The languages of the two tokenizers; None if there is one vocabulary and no translation."""
        return None

    @abstractmethod
    def corpora(self, settings: SettingsT, cache_dir: Path) -> Corpora[SettingsT]:
        """The text files of a run. Raises Mistake if one is missing or a line of it cannot be read."""

    @abstractmethod
    def model(self, settings: SettingsT, tokenizers: TokenizerPair, start: PretrainedRun | None) -> ModelT:
        """The model, with new weights or those of `start`."""

    @abstractmethod
    def check_lengths(self, model: ModelT, examples: Examples) -> None:
        """Raises Mistake if there is no validation sentence, or if a sentence is longer than the model can read."""

    @abstractmethod
    def task(self, settings: SettingsT, model: ModelT) -> TrainingTask:
        """What a step computes, with its optimizer and schedule."""

    def validations(
        self, run: RunDirectory, settings: SettingsT, tokenizers: TokenizerPair, model: ModelT, examples: Examples
    ) -> Sequence[Callback]:
        """Callbacks for what a validation does besides computing the loss, such as BLEU."""
        return ()
