"""The settings of a run: the keys that its config.yaml stores, their types and ranges, and which values exclude each
other. The settings of a command stand beside it, as in nmt/commands/translate_settings.py.

The YAML files in configs/ contain the defaults. A key whose value describes an object (`model`, `optimizer`, `search`
...) is a Node: its own YAML file declares the object's arguments and their types, which `check_node` enforces, and the
object's constructor checks their ranges.
"""

import math
import re
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BeforeValidator, ConfigDict, Field, ValidationError, create_model
from pydantic import model_validator as check

from nmt.config.fields import (
    LARGEST,
    Duration,
    Fraction,
    Keys,
    Languages,
    Limit,
    NonNegative,
    Positive,
    PositiveNumber,
    Probability,
    Text,
    Texts,
    Workers,
    as_text,
    expects,
    seconds_of,
)
from nmt.config.messages import invalid
from nmt.config.nodes import Node
from nmt.errors import Mistake

EMBEDDED = "sample:"
"""The names of all parts of the embedded corpus begin with this."""


class Batching(Keys):
    batch_tokens: Positive
    workers: Workers


class Data(Keys):
    """The corpora of a run, as prefixes of aligned files (see nmt.data.corpus). Any other key is another test split."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Annotated[Text | None, expects("the PREFIX of aligned files, or null")]]

    name: Text
    train: Texts
    valid: Annotated[Text, expects("the PREFIX of aligned files")]
    test: Annotated[Text | None, expects("the PREFIX of aligned files, or null")] = None
    tokenized: Annotated[bool | None, expects("true, false or null")] = None
    detokenize: Annotated[list[Text], expects("a list of PREFIXES, as in data.detokenize=[my/train]")] = Field([])
    sampling_temperature: PositiveNumber = 1.0
    concat_prob: Annotated[float, Field(ge=0, le=1), expects("a probability from 0 to 1")] = 0.0

    @check(mode="after")
    def check_corpora(self) -> "Data":
        if not self.train:
            raise Mistake("data.train is empty; name at least one PREFIX, as in data.train=[my/train].")
        for name in self.tests:  # evaluations are written to a folder of this name
            if not re.fullmatch(r"\w[\w.-]*", name):
                raise Mistake(f"data has the test split '{name}': use letters, digits, '_', '-' and '.' in its name.")
        if self.tokenized and self.detokenize:
            raise Mistake(
                "data.tokenized=true scores tokenized text, but data.detokenize turns the corpora into plain text: set "
                "data.tokenized=false or data.detokenize=[]."
            )
        return self

    @property
    def tests(self) -> dict[str, str]:
        """The prefix of each test split, by the name of the split."""
        splits = {"test": self.test, **(self.__pydantic_extra__ or {})}
        return {name: prefix for name, prefix in splits.items() if prefix}

    @property
    def held_out(self) -> dict[str, str]:
        """The prefix of the validation split and of each test split, by the name of the split."""
        return {"valid": self.valid, **self.tests}

    @property
    def embedded(self) -> bool:
        """Whether all training text belongs to the corpus that is part of this project."""
        return all(prefix.startswith(EMBEDDED) for prefix in self.train)

    def becomes_plain(self, prefix: str) -> bool:
        """Whether `detokenize` names this corpus, so that it is read as plain text."""
        return prefix in self.detokenize


class FilterSettings(Keys):
    max_tokens: Annotated[int, Field(ge=2, le=LARGEST), expects("a whole number of at least 2; it counts EOS")]
    max_ratio: Annotated[
        float,
        Field(ge=1, allow_inf_nan=False),
        expects("a number of at least 1: the largest allowed ratio of the longer to the shorter side"),
    ]
    drop_duplicates: bool
    drop_overlap: bool
    drop_swapped: bool


class ContextSettings(Keys):
    """The earlier sentences of a document that a model reads with each sentence."""

    sentences: Annotated[Annotated[int, Field(ge=0, le=1000)], expects("a whole number from 0 to 1000")] = 0
    model: Node | None = None
    """The model that reads them and wraps the sentence model; None if they become part of the source."""

    @check(mode="after")
    def check_sentences(self) -> "ContextSettings":
        if self.model is not None and self.sentences == 0:
            raise Mistake(
                "context.sentences is 0, but context.model reads earlier sentences; set it to at least 1, or "
                "use context=none."
            )
        return self


class TokenizerSettings(Keys):
    kind: Literal["bpe", "unigram"]
    size: Annotated[
        Annotated[int, Field(ge=1, le=1_000_000)] | None,
        expects("a whole number from 1 to 1,000,000, or null for a size that fits the corpus"),
    ]
    joint: bool
    character_coverage: Annotated[Fraction, expects("above 0 and at most 1, such as 0.9999")]
    tone_marks: Annotated[Literal["old", "new"] | None, expects("old, new, or null for the text as it is")]


class LossValidation(Keys):
    """Validation during training; the checkpoint with the lowest loss counts as the best."""

    every: Positive
    patience: Positive

    @property
    def metric(self) -> str:
        """The logged metric that decides which checkpoint is best."""
        return "valid_loss"

    @property
    def better(self) -> Literal["max", "min"]:
        """Whether the best value of that metric is the largest or the smallest."""
        return "min"


class Validation(LossValidation):
    monitor: Literal["bleu", "loss"]
    sentences: Positive
    probes: NonNegative
    max_time_fraction: Fraction

    @property
    def metric(self) -> str:
        return f"valid_{self.monitor}"

    @property
    def better(self) -> Literal["max", "min"]:
        return "max" if self.monitor == "bleu" else "min"


class CheckpointSettings(Keys):
    keep: Positive
    recent: NonNegative = 0
    """For nmt.average, so nmt.pretrain has no such key."""


class TrainerSettings(Keys):
    """Lightning's Trainer options, under the same names; nmt itself applies the limits, accumulation and clipping."""

    max_steps: Limit
    max_epochs: Limit
    max_time: Duration
    accumulate_grad_batches: Positive
    gradient_clip_val: Annotated[
        Annotated[float, Field(ge=0, allow_inf_nan=False)] | None, expects("a number of at least 0, or null for none")
    ]
    gradient_clip_algorithm: Literal["norm", "value"]
    precision: Annotated[
        Literal["32-true", "bf16-mixed", "16-mixed", "bf16-true", "16-true", "64-true", "32", "bf16", "16", "64"],
        BeforeValidator(as_text),
    ]
    accelerator: Text
    devices: Annotated[
        int | Annotated[str, Field(pattern=r"^(auto|-1|\d+(,\d+)*)$")] | list[NonNegative] | None,
        expects("a number of devices, a list such as [0,1], or auto"),
    ]
    num_nodes: Positive
    strategy: Text
    log_every_n_steps: Positive

    @check(mode="after")
    def check_options(self) -> "TrainerSettings":
        if self.strategy.startswith("fsdp"):
            raise Mistake(
                f"trainer.strategy={self.strategy} splits a model over several GPUs, which nmt does not support: use "
                "trainer=ddp, which needs memory for the whole model on each of them."
            )
        if self.strategy.startswith(("ddp_spawn", "ddp_fork", "ddp_notebook")):
            raise Mistake(
                f"trainer.strategy={self.strategy} trains in copies of this process, which nmt does not support: use "
                "trainer=ddp, which starts the command once for each device."
            )
        if (self.max_steps, self.max_epochs, self.max_seconds) == (None, None, None):
            raise Mistake("Training would never end: set trainer.max_steps, trainer.max_epochs or trainer.max_time.")
        return self

    @property
    def max_seconds(self) -> float | None:
        """The time limit in seconds; None without a limit."""
        return None if self.max_time is None else seconds_of(self.max_time)

    @property
    def options(self) -> dict[str, Any]:
        """The options that are passed to Lightning's Trainer."""
        names = ("precision", "accelerator", "devices", "num_nodes", "strategy", "log_every_n_steps")
        return {name: value for name in names if (value := getattr(self, name)) is not None}


class LoopSettings(Keys):
    """Settings common to all training runs."""

    seed: NonNegative
    batching: Batching
    max_skipped_steps: NonNegative
    ema_decay: Annotated[
        Annotated[float, Field(gt=0, lt=1)] | None, expects("a number between 0 and 1, such as 0.999, or null")
    ]
    validation: LossValidation
    checkpoints: CheckpointSettings
    tokenizer: TokenizerSettings
    trainer: TrainerSettings
    model: Node
    scorer: Node
    normalizer: Node
    initializer: Node
    optimizer: Node
    schedule: Node
    logger: dict[str, Node]
    callbacks: dict[str, Node]
    encoder_self: Node | None = None
    """The parts that this site uses instead of `scorer` and `normalizer`; the resolved `model` contains them."""

    @check(mode="after")
    def check_learning_rate(self) -> "LoopSettings":
        rate = self.optimizer.get("lr", 1.0)
        if isinstance(rate, bool) or not isinstance(rate, (int, float)) or not 0 < rate < math.inf:
            raise Mistake(f"optimizer.lr is {rate}; it must be a number above 0, such as 0.001.")
        return self


class RunSettings(LoopSettings):
    """The training settings that a run directory stores."""

    start_from: Text | None
    direction: Languages
    filters: FilterSettings
    label_smoothing: Probability
    word_dropout: Probability
    unicode_noise: Probability
    subword_sampling: Annotated[Fraction | None, expects("above 0 and at most 1, such as 0.1, or null for none")]
    validation: Validation
    data: Data
    window: Node
    objective: Node
    context: ContextSettings = ContextSettings()
    search: Node
    decoder_self: Node | None = None
    cross: Node | None = None
    encoder_words: Node | None = None
    encoder_sentences: Node | None = None
    decoder_words: Node | None = None
    decoder_sentences: Node | None = None

    @check(mode="after")
    def check_tone_marks(self) -> "RunSettings":
        style, languages = self.tokenizer.tone_marks, (self.direction.source, self.direction.target)
        if style is not None and "vi" not in languages:
            raise Mistake(
                f"tokenizer.tone_marks={style} is a style of Vietnamese, but direction={self.direction} has no side in "
                "Vietnamese (vi): set tokenizer.tone_marks=null."
            )
        return self

    @check(mode="after")
    def check_context(self) -> "RunSettings":
        if self.context.sentences and self.data.concat_prob:
            raise Mistake(
                "data.concat_prob joins unrelated pairs, which share no document: set data.concat_prob=0, or "
                "context=none."
            )
        return self


class StartSettings(Keys):
    """Where and how a training run starts. These settings are not stored in the run directory."""

    run_dir: Text
    sweep_dir: Text | None
    resume: Annotated[Literal["auto"] | bool, expects("true, false or auto")]
    overwrite: bool
    cache_dir: Text

    @check(mode="after")
    def check_start(self) -> "StartSettings":
        if self.resume and self.overwrite:
            resume = str(self.resume).lower()
            raise Mistake(f"resume={resume} continues a run and overwrite=true deletes it: use only one of them.")
        return self


NOT_STORED = tuple(StartSettings.model_fields)


class TrainSettings(RunSettings, StartSettings):
    """The keys of nmt.train: what the run stores, and where and how it starts."""


class LineData(Keys):
    """Text files with one sentence per line, in any language."""

    train: Annotated[Texts, expects("a list of text files, as in data.train=[my/text.en,my/text.vi]")]
    valid: Annotated[Texts | None, expects("a list of text files, or null for the last lines of the training files")]
    valid_lines: Positive
    exclude: Annotated[Texts, expects("a list of text files, as in data.exclude=[my/test.en,my/test.vi]")]
    vocabulary: Annotated[Texts, expects("a list of text files, as in data.vocabulary=[my/text.vi]")]
    sampling_temperature: PositiveNumber

    @check(mode="after")
    def check_files(self) -> "LineData":
        for key, files in (("train", self.train), ("valid", self.valid)):
            if files == []:
                raise Mistake(f"data.{key} is empty; name at least one text file, as in data.{key}=[my/text.en].")
        return self


class LineFilterSettings(Keys):
    max_tokens: Annotated[int, Field(ge=2, le=LARGEST), expects("a whole number of at least 2; it counts EOS")]
    drop_duplicates: bool
    drop_overlap: bool


class MaskingSettings(Keys):
    share: Fraction
    mask: Annotated[float, Field(ge=0, le=1), expects("a probability from 0 to 1")]
    random: Annotated[float, Field(ge=0, le=1), expects("a probability from 0 to 1")]

    @check(mode="after")
    def check_sum(self) -> "MaskingSettings":
        if self.mask + self.random > 1:
            raise Mistake(
                f"masking.mask + masking.random is {self.mask + self.random:g}; the sum must be at most 1, because the "
                "rest of the selected pieces stay unchanged."
            )
        return self


class EncoderSettings(LoopSettings):
    """The settings that the run directory of a pretrained encoder stores."""

    data: LineData
    filters: LineFilterSettings
    masking: MaskingSettings

    @check(mode="after")
    def check_exclusion(self) -> "EncoderSettings":
        if self.data.exclude and not self.filters.drop_overlap:
            raise Mistake("data.exclude has no effect with filters.drop_overlap=false: leave out one of the two.")
        return self

    @check(mode="after")
    def check_vocabulary(self) -> "EncoderSettings":
        if not self.tokenizer.joint:
            raise Mistake("tokenizer.joint is false, but pretraining uses one vocabulary: leave out tokenizer.joint.")
        return self


class PretrainSettings(EncoderSettings, StartSettings):
    """The keys of nmt.pretrain: what the run stores, and where and how it starts."""


Settings = TypeVar("Settings", bound=Keys)


def validated(kind: type[Settings], values: Mapping[str, Any]) -> Settings:
    """The settings with these values. Raises a Mistake that describes the first invalid value in one sentence."""
    try:
        return kind.model_validate(dict(values))
    except ValidationError as error:
        raise invalid(error, kind) from error


def check_node(key: str, node: Node, default: Node) -> None:
    """Raises Mistake for an argument that the node's YAML file does not declare, or declares with a different type.

    An argument whose default is null takes any value, because only the constructor knows its type. One whose default
    is an interpolation, which only the file of a choice has, is a width or a number of steps.
    """
    kind = _settings_of_shape(_shape(default))
    try:
        kind.model_validate(node)
    except ValidationError as error:
        raise invalid(error, kind, key) from error


_WidthOrSteps = Annotated[int | Annotated[float, Field(allow_inf_nan=False)] | None, expects("a number, or null")]


_Shape = tuple[tuple[str, Any], ...]
"""Argument names of a node, each with its type, "any", "number" or, for a nested node, that node's shape."""


def _shape(node: Node) -> _Shape:
    kinds: dict[str, Any] = {}
    for name, value in node.items():
        if value is None or value == "???":
            kinds[name] = "any"
        elif isinstance(value, str) and "${" in value:
            kinds[name] = "number"
        else:
            kinds[name] = _shape(value) if isinstance(value, dict) and value else type(value)
    return tuple(kinds.items())


@cache  # pydantic takes milliseconds to make a class
def _settings_of_shape(shape: _Shape) -> type[Keys]:
    """A settings class whose keys have the names and types of a node's arguments."""
    special = {"any": Any, "number": _WidthOrSteps, str: Text}
    fields: dict[str, Any] = {}
    for number, (name, kind) in enumerate(shape):
        annotation = _settings_of_shape(kind) if isinstance(kind, tuple) else special.get(kind, kind)
        # By alias, because pydantic does not allow field names such as _target_.
        fields[f"key_{number}"] = (annotation, Field(alias=name))
    return create_model("Node", __base__=Keys, **fields)
