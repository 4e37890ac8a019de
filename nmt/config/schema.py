"""The configuration of every command: its keys, their types and ranges, and which values exclude each other.

The YAML files in configs/ contain the defaults. A key whose value describes an object (`model`, `optimizer`, `search`
...) is a Node: its own YAML file declares the object's arguments and their types, which `check_node` enforces, and the
object's constructor checks their ranges.
"""

import math
import os
import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, WrapValidator, create_model
from pydantic import model_validator as check
from pydantic_core import PydanticCustomError

from nmt.config.direction import Direction
from nmt.config.messages import invalid
from nmt.config.nodes import Node
from nmt.errors import Mistake

RENAMED = {
    "nonfinite_steps": "max_skipped_steps",
    "batching.temperature": "data.sampling_temperature",
    "batching.concatenate": "data.concat_prob",
    "validation.time_share": "validation.max_time_fraction",
    "shift": "row",
    "window.renormalise": "window.renormalize",
    "initializer=as_made": "initializer=default",
    "norm@model.norm": "norm@model",
    **{f"normalizer@{site}_normalizer": f"normalizer@{site}" for site in ("encoder_self", "decoder_self", "cross")},
    **{f"{site}.hidden_dim": f"{site}.scorer.hidden_dim" for site in ("encoder_self", "decoder_self", "cross")},
    **{f"{site}.max_length": f"{site}.scorer.max_length" for site in ("encoder_self", "decoder_self", "cross")},
}
"""The current names of renamed keys, choices and groups at a site, by their former names."""


def expects(expectation: str) -> WrapValidator:
    """A validator for an annotated type; its error says what was expected."""

    def expect(value: Any, handler: Any) -> Any:
        try:
            return handler(value)
        except ValidationError as error:
            raise PydanticCustomError(
                "expectation", "it must be {expectation}", {"expectation": expectation}
            ) from error

    return WrapValidator(expect)


def _as_text(value: Any) -> Any:
    return str(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else value


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, (str, int, float)) and not isinstance(value, bool) else value


def seconds_of(duration: str) -> float:
    """The number of seconds in '90s', '30m', '4h', '1h30m', '2d' or days:hours:minutes:seconds.

    Raises Mistake for any other form.
    """
    fields = re.fullmatch(r"(\d+):(\d\d):(\d\d):(\d\d)", duration)
    units = re.fullmatch(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?", duration)
    found = fields or units
    if not found or not duration:
        raise Mistake(f"'{duration}' is not a duration such as 90s, 30m, 4h or 00:04:00:00.")
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds).total_seconds()


def _check_duration(value: str) -> str:
    seconds_of(value)
    return value


class TextKey:
    """Marks a key whose value is a path or free text: the command line takes it as typed."""


_LARGEST = 2**31 - 1

Text = Annotated[str, BeforeValidator(_as_text), TextKey()]
Texts = Annotated[list[Text], BeforeValidator(_as_list)]
TextOrTexts = Annotated[list[Text], BeforeValidator(_as_list), expects("text, or a list such as [A,B]")]
NonNegative = Annotated[int, Field(ge=0, le=_LARGEST), expects("a whole number of at least 0")]
Positive = Annotated[int, Field(ge=1, le=_LARGEST), expects("a whole number of at least 1")]
PositiveOrAll = Annotated[Positive | None, expects("a whole number of at least 1, or null for all")]
Limit = Annotated[Positive | None, expects("a whole number of at least 1, or null for no limit")]
PositiveNumber = Annotated[float, Field(gt=0, allow_inf_nan=False), expects("a number above 0, such as 5")]
Probability = Annotated[float, Field(ge=0, lt=1), expects("at least 0 and below 1")]
Fraction = Annotated[float, Field(gt=0, le=1), expects("above 0 and at most 1, such as 0.2")]
Duration = Annotated[
    Text | None,
    BeforeValidator(lambda value: value if value is None else _check_duration(_as_text(value))),
    expects("a duration such as 90s, 30m, 4h or days:hours:minutes:seconds, as in 00:01:30:00; or null for no limit"),
]
Device = Literal["auto", "cpu", "cuda"]
Precision = Literal["float32", "bfloat16", "int8"]
EngineName = Literal["torch", "ctranslate2", "onnx"]
"""The library that computes translations; see nmt.exports."""
SourceTokens = Annotated[
    Annotated[int, Field(ge=2, le=_LARGEST)] | None, expects("a whole number of at least 2, or null")
]


class Keys(BaseModel):
    """A group of configuration keys; unknown keys are rejected."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, arbitrary_types_allowed=True)


class Batching(Keys):
    batch_tokens: Positive
    workers: NonNegative


class Data(Keys):
    """The corpora of a run, as prefixes of aligned files (see nmt.data.corpus). Any other key is another test split."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Annotated[Text | None, expects("the PREFIX of aligned files, or null")]]

    name: Text
    train: Texts
    valid: Annotated[Text, expects("the PREFIX of aligned files")]
    test: Annotated[Text | None, expects("the PREFIX of aligned files, or null")] = None
    tokenized: Annotated[bool | None, expects("true, false or null")] = None
    detokenize: Annotated[list[Text], expects("a list of PREFIXES, as in data.detokenize=[my/train]")] = []
    sampling_temperature: PositiveNumber = 1.0
    concat_prob: Annotated[float, Field(ge=0, le=1), expects("a probability from 0 to 1")] = 0.0

    @check(mode="after")
    def check_corpora(self) -> "Data":
        if not self.train:
            raise Mistake("data.train is empty; name at least one PREFIX, as in data.train=[my/train].")
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

    def becomes_plain(self, prefix: str) -> bool:
        """Whether `detokenize` names this corpus, so that it is read as plain text."""
        return prefix in self.detokenize


class FilterSettings(Keys):
    max_tokens: Annotated[int, Field(ge=2, le=_LARGEST), expects("a whole number of at least 2; it counts EOS")]
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
    size: Annotated[Positive | None, expects("a whole number of at least 1, or null for a size that fits the corpus")]
    joint: bool


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
    recent: NonNegative


class TrainerSettings(Keys):
    """Lightning's Trainer options, under the same names; nmt itself applies max_steps, max_epochs and max_time."""

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
        BeforeValidator(_as_text),
    ]
    accelerator: Text
    devices: Any
    num_nodes: Positive
    strategy: Text
    log_every_n_steps: Positive
    min_steps: Annotated[NonNegative | None, expects("a whole number of at least 0, or null")]
    limit_val_batches: Any
    deterministic: Any
    benchmark: Any
    detect_anomaly: Any
    inference_mode: Any
    profiler: Any

    @check(mode="after")
    def check_limits(self) -> "TrainerSettings":
        if self.limit_val_batches == 0:
            raise Mistake(
                "trainer.limit_val_batches is 0, but only validated weights are kept: set it to null, and raise "
                "validation.every to validate less often."
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
        ours = ("max_steps", "max_epochs", "max_time")
        return {key: value for key, value in self.model_dump().items() if value is not None and key not in ours}


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
    logger: Node
    encoder_self: Node | None = None
    """The parts that this site uses instead of `scorer` and `normalizer`; the resolved `model` contains them."""

    @check(mode="after")
    def check_learning_rate(self) -> "LoopSettings":
        rate = self.optimizer.get("lr", 1.0)
        if isinstance(rate, bool) or not isinstance(rate, (int, float)) or not 0 < rate < math.inf:
            raise Mistake(f"optimizer.lr is {rate}; it must be a number above 0, such as 0.001.")
        return self

    @check(mode="after")
    def check_scaling(self) -> "LoopSettings":
        clips = self.trainer.gradient_clip_val and self.optimizer.get("fused")
        if self.trainer.precision in ("16", "16-mixed") and clips:
            raise Mistake(
                f"trainer.precision={self.trainer.precision} scales the loss, and a fused optimizer unscales the "
                "gradients only after they are clipped: add optimizer.fused=false, or use "
                "trainer.precision=bf16-mixed."
            )
        return self


class RunSettings(LoopSettings):
    """The training settings that a run directory stores."""

    start_from: Text | None
    direction: Annotated[Direction, BeforeValidator(lambda text: Direction.parse(str(text)))]
    filters: FilterSettings
    label_smoothing: Probability
    word_dropout: Probability
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
    resume: bool
    overwrite: bool
    cache_dir: Text

    @check(mode="after")
    def check_start(self) -> "StartSettings":
        if self.resume and self.overwrite:
            raise Mistake("resume=true continues a run and overwrite=true deletes it: use only one of them.")
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
    max_tokens: Annotated[int, Field(ge=2, le=_LARGEST), expects("a whole number of at least 2; it counts EOS")]
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


PairsOrShare = Annotated[
    Annotated[int, Field(ge=0, le=_LARGEST)] | Annotated[float, Field(gt=0, lt=1)],
    expects("a number of pairs, such as 1000, or a share of the corpus, such as 0.05"),
]


class SplitSettings(Keys):
    """A corpus to split into training, validation and test pairs."""

    corpus: Text | None
    out: Text | None
    valid: PairsOrShare
    test: PairsOrShare

    @check(mode="after")
    def check_corpus(self) -> "SplitSettings":
        if self.out is not None and self.corpus is None:
            raise Mistake("split.out is given without split.corpus; name the corpus to split.")
        if self.valid == 0:
            raise Mistake("split.valid is 0, but training needs validation pairs; set it to at least 1.")
        return self


class PrepareSettings(TrainSettings):
    """The keys of nmt.prepare: those of nmt.train, and a corpus to split."""

    split: SplitSettings


class OwnFiles(Keys):
    """The user's own files, which take the place of a split."""

    source: Text | None
    reference: Annotated[TextOrTexts | None, expects("a file, a list of files such as [A,B], or null")]

    @check(mode="after")
    def check_files(self) -> "OwnFiles":
        if (self.source is None) != (self.reference is None):
            given, missing = ("source", "reference") if self.source else ("reference", "source")
            raise Mistake(f"{given} is given without {missing}; set both to use your own files.")
        if self.reference == []:
            raise Mistake("reference is an empty list; name at least one file.")
        for key in ("alignment", "documents"):
            if getattr(self, key, None) is not None and self.source is None:
                raise Mistake(f"{key} is only for your own files; set source and reference too.")
        return self


def check_workers(workers: int, engine: str) -> None:
    """Raises Mistake for several workers with an engine other than torch."""
    if workers > 1 and engine != "torch":
        raise Mistake(
            f"workers={workers} needs engine=torch, because engine={engine} already uses all threads: leave out one of "
            "them."
        )


class SearchingSettings(Keys):
    """How a command searches for translations."""

    workers: Positive
    engine: EngineName
    device: Device
    precision: Precision

    @check(mode="after")
    def check_engine(self) -> "SearchingSettings":
        check_workers(self.workers, self.engine)
        return self


class TranslateSettings(SearchingSettings):
    search: Node
    run_dir: TextOrTexts
    format: Literal["text", "tsv", "jsonl"]
    prefixes: Text | None
    document: bool
    minimum_bayes_risk: bool
    batch_tokens: Positive
    max_source_tokens: SourceTokens
    read_ahead: Positive


class EvaluateSettings(OwnFiles, SearchingSettings):
    search: Node
    run_dir: TextOrTexts
    split: Text
    documents: Text | None
    alignment: Text | None
    out: Text | None
    minimum_bayes_risk: bool
    comet: Text | None
    expect: Annotated[Annotated[float, Field(allow_inf_nan=False)] | None, expects("a score such as 26.1, or null")]
    band: Annotated[float, Field(ge=0, allow_inf_nan=False), expects("a finite number of at least 0")]
    batch_tokens: Positive
    max_source_tokens: SourceTokens


class CompareSettings(Keys):
    run_dirs: Annotated[list[Text], expects("a list, as in 'run_dirs=[A,B]'")]
    split: Text
    outputs: Annotated[list[Text], expects("a list, as in 'outputs=[a.vi,b.vi]'")]
    reference: Annotated[TextOrTexts | None, expects("a file, a list of files such as [A,B], or null")]
    out: Text
    device: Device

    @check(mode="after")
    def check_systems(self) -> "CompareSettings":
        if bool(self.run_dirs) == bool(self.outputs):
            raise Mistake(
                "Set either 'run_dirs=[A,B]' to compare runs, or 'outputs=[a.vi,b.vi]' and reference=FILE to compare "
                "files of translations."
            )
        places = [os.path.realpath(path) for path in self.run_dirs]
        if twice := [path for path, place in zip(self.run_dirs, places, strict=True) if places.count(place) > 1]:
            raise Mistake(f"run_dirs names {twice[0]} twice; name each run once.")
        if self.outputs and self.reference in (None, []):
            raise Mistake("outputs need a reference: set reference=FILE, or 'reference=[A,B]' for several.")
        return self


class ScoreSettings(Keys):
    run_dir: TextOrTexts
    source: Text
    target: Text
    documents: Text | None
    batch_tokens: Positive
    device: Device


AttributionMethod = Literal["gradient_x_input", "integrated_gradients", "occlusion", "value_zeroing"]
"""How nmt.attribute measures what a source piece contributes."""


class AlignSettings(OwnFiles):
    run_dir: Text
    split: Text
    alignment: Text | None
    method: Literal["attention", AttributionMethod]
    out: Text | None
    threshold: Fraction
    batch_tokens: Positive
    device: Device


class AverageSettings(Keys):
    run_dir: Text
    checkpoints: Literal["best", "recent"]
    number: Annotated[
        Annotated[int, Field(ge=2, le=_LARGEST)] | None, expects("a whole number of at least 2, or null for all")
    ]
    out: Text | None
    overwrite: bool
    device: Device


LayerOrHead = Annotated[
    NonNegative | Literal["all"] | None, expects("a whole number of at least 0, all, or null for the mean")
]


class LookSettings(Keys):
    """Which files are made from maps, and how they look."""

    formats: list[Literal["png", "svg", "pdf", "csv", "alignments", "diagnostics", "viewer"]]
    words: bool
    width: Annotated[
        Annotated[float, Field(ge=1, le=100)] | None, expects("from 1 to 100 inches, such as 3.3, or null")
    ]
    max_weight: Annotated[Fraction | None, expects("above 0 and at most 1, such as 0.2, or null")]
    threshold: Fraction
    sort_by: Literal[
        "entropy", "uniformity", "distance", "monotonicity", "coverage", "special", "punctuation", "variation"
    ]


class DrawingSettings(LookSettings):
    """How attention maps are drawn."""

    site: Text
    layer: LayerOrHead
    head: LayerOrHead
    grid: bool
    row: Literal["predicts", "reads"]

    @check(mode="after")
    def check_grid(self) -> "DrawingSettings":
        if self.grid and (self.layer, self.head) != (None, None):
            raise Mistake("grid=true draws every layer and head; leave out layer and head.")
        return self


class MapFileSettings(Keys):
    """The lines whose maps are made, and the folder for the maps."""

    search: Node
    run_dir: Text
    input: Text
    target: Text | None
    documents: Text | None
    out: Text
    overwrite: bool
    max_tokens: Annotated[int, Field(ge=2, le=_LARGEST), expects("a whole number of at least 2")]
    batch_tokens: Positive
    device: Device


class ExportAttentionSettings(DrawingSettings, MapFileSettings):
    pass


class AttributeSettings(LookSettings, MapFileSettings):
    method: Literal[AttributionMethod, "p_cxmi"]
    contrast: Text | None
    steps: Annotated[Positive | None, expects("a whole number of at least 1, or null for 8")]

    @check(mode="after")
    def check_method(self) -> "AttributeSettings":
        if self.method != "p_cxmi" and self.documents is not None:
            raise Mistake(
                f"documents has no effect with method={self.method}, which explains each sentence without the earlier "
                "ones; leave it out, or use method=p_cxmi."
            )
        if self.method == "p_cxmi":
            if self.documents is None:
                raise Mistake(
                    "method=p_cxmi measures what earlier sentences contribute: add documents=FILE, a file that names "
                    "the document of each line."
                )
            for key in ("contrast", "steps"):
                if getattr(self, key) is not None:
                    raise Mistake(f"{key} has no effect with method=p_cxmi; leave it out.")
        return self


class DrawAttentionSettings(DrawingSettings):
    maps: TextOrTexts
    lines: Annotated[
        Annotated[list[Positive], Field(min_length=1)] | None,
        BeforeValidator(_as_list),
        expects("a list of line numbers, counted from 1, as in lines=[1,5], or null for all"),
    ]
    out: Text | None

    @check(mode="after")
    def check_lists(self) -> "DrawAttentionSettings":
        if not self.formats:
            raise Mistake("formats is an empty list; name at least one format, as in formats=[png].")
        if self.maps == []:
            raise Mistake("maps is an empty list; name at least one folder that nmt.export_attention wrote.")
        return self


class AblateAttentionSettings(OwnFiles):
    run_dir: Text
    site: Text
    ways: list[Literal["off", "uniform", "shuffled", "frozen"]]
    split: Text
    sentences: PositiveOrAll
    bleu: bool
    out: Text | None
    batch_tokens: Positive
    device: Device

    @check(mode="after")
    def check_ways(self) -> "AblateAttentionSettings":
        if not self.ways:
            raise Mistake("ways is an empty list; name at least one of off, uniform, shuffled, frozen.")
        return self


class ExportSettings(OwnFiles):
    """The format of an export, and the folder to which it is written."""

    run_dir: Text
    format: Literal["ctranslate2", "hugging_face", "onnx", "argos"]
    out: Text
    overwrite: bool
    quantization: Literal["float32", "int8", "int16", "float16", "bfloat16"]

    @check(mode="after")
    def check_reference(self) -> "ExportSettings":
        if self.reference is not None and len(self.reference) > 1:
            raise Mistake(
                f"reference names {len(self.reference)} files, but an export is checked against only one: name "
                "one file."
            )
        return self


class ExplainSettings(Keys):
    model: Node
    scorer: Node
    window: Node
    normalizer: Node
    encoder_self: Node | None = None
    decoder_self: Node | None = None
    cross: Node | None = None
    context: ContextSettings
    encoder_words: Node | None = None
    encoder_sentences: Node | None = None
    decoder_words: Node | None = None
    decoder_sentences: Node | None = None
    source_length: Positive
    target_length: Positive
    vocabulary: Annotated[int, Field(ge=5, le=_LARGEST), expects("a whole number of at least 5; 4 pieces are special")]


class ServeSettings(Keys):
    run_dirs: Texts
    host: Text
    port: Annotated[int, Field(ge=0, le=65535), expects("a port from 1 to 65535, or 0 for a free one")]
    engine: EngineName
    device: Device
    precision: Precision
    max_models: Positive
    batch_tokens: Positive
    batch_window: Annotated[float, Field(ge=0, le=10), expects("seconds from 0 to 10, such as 0.005")]
    max_waiting: Positive
    time_limit: PositiveNumber
    max_characters: Positive
    max_sentences: Positive
    max_alternatives: NonNegative
    max_body_bytes: Positive
    api_keys: Text | None
    metrics_token: Text | None
    allow_origins: Texts

    @check(mode="after")
    def check_lists(self) -> "ServeSettings":
        if not self.run_dirs:
            raise Mistake("run_dirs is an empty list; name at least one run directory, or a folder that contains runs.")
        if "*" in self.allow_origins:
            raise Mistake("allow_origins is '*', which lets every web page use the server; name the allowed origins.")
        return self


class DownloadSettings(Keys):
    what: Texts
    out: Text
    copies: Annotated[Text | None, Field(alias="from")]
    languages: Annotated[Direction, BeforeValidator(lambda text: Direction.parse(str(text)))]
    hub_config: Text | None
    max_gib: PositiveNumber
    extract: bool


COMMANDS: dict[str, type[Keys]] = {
    "train": TrainSettings,
    "pretrain": PretrainSettings,
    "prepare": PrepareSettings,
    "translate": TranslateSettings,
    "evaluate": EvaluateSettings,
    "compare": CompareSettings,
    "score": ScoreSettings,
    "align": AlignSettings,
    "average": AverageSettings,
    "export_attention": ExportAttentionSettings,
    "draw_attention": DrawAttentionSettings,
    "attribute": AttributeSettings,
    "ablate_attention": AblateAttentionSettings,
    "export": ExportSettings,
    "explain": ExplainSettings,
    "download": DownloadSettings,
    "serve": ServeSettings,
}
"""The settings of each command, by the name of its YAML file."""

Settings = TypeVar("Settings", bound=Keys)


def validated(kind: type[Settings], values: Mapping[str, Any]) -> Settings:
    """The settings with these values. Raises a ValueError that describes the first invalid value in one sentence."""
    try:
        return kind.model_validate(dict(values))
    except ValidationError as error:
        raise Mistake(invalid(error, kind, RENAMED)) from error


def check_node(key: str, node: Node, default: Node) -> None:
    """Raises Mistake for an argument that the node's YAML file does not declare, or declares with a different type.

    An argument whose default is null takes any value, because only the constructor knows its type.
    """
    try:
        _like(default).model_validate(node)
    except ValidationError as error:
        raise Mistake(invalid(error, _like(default), RENAMED, key)) from error


def _like(node: Node) -> type[Keys]:
    """A settings class whose keys have the names and types of a node's values."""
    fields: dict[str, Any] = {}
    for number, (name, value) in enumerate(node.items()):
        kind: Any = type(value)
        if value is None or value == "???":
            kind = Any
        elif isinstance(value, dict) and value:
            kind = _like(value)
        elif isinstance(value, str):
            kind = Text
        # By alias, because pydantic does not allow field names such as _target_.
        fields[f"key_{number}"] = (kind, Field(alias=name))
    return create_model("Node", __base__=Keys, **fields)
