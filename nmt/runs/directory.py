"""A run directory: everything that training leaves behind, complete and portable."""

import hashlib
import os
import shlex
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar

import yaml
from pydantic import ConfigDict, Discriminator, Field, Tag

from nmt.config.direction import Direction
from nmt.config.fields import LARGEST
from nmt.config.keys import normal_form
from nmt.config.stored import Count, Number, Stored, read_stored
from nmt.config.trusted import read_plain_yaml
from nmt.data.cache import file_digest
from nmt.errors import Mistake
from nmt.evaluation.score_record import ScoreRecord
from nmt.files import check_size, is_part, remove, remove_parts, write_bytes, write_json
from nmt.paths import check_link, check_links, not_a_folder
from nmt.runs.included import included_models, included_name
from nmt.text import Tokenizer, TokenizerPair
from nmt.text.dictionary import NO_DICTIONARY, Dictionary
from nmt.text.lines import read_lines
from nmt.text.tone_marks import ToneMarks

_CONFIG, _WEIGHTS, _METRICS, _JOINT = "config.yaml", "model.safetensors", "metrics.json", "tokenizer.model"
_WORDS, _DICTIONARY = "source_words.txt", "dictionary.tsv"
_MASKING = "masking"
_LARGEST_TOKENIZER = 2**27  # bytes; a million pieces need a quarter of it
_MOST_WORD_BYTES = 2**23  # about 800,000 words; the lab keeps them in memory
_MOST_DICTIONARY_BYTES = 2**23  # about 400,000 words; servers and pages keep them in memory
_FOLDERS = ("checkpoints", "logs", "evaluation", "probes", "exports")


class _EncoderScores(Stored):
    """The validation loss and accuracy of a pretrained encoder."""

    model_config = ConfigDict(extra="forbid")
    valid: dict[str, Number]


def _kind_of_scores(scores: Any) -> str:
    """The tag of the class of these scores: an encoder's are numbers, a translation model's are lists of scores."""
    is_encoder = isinstance(scores, dict) and isinstance(scores.get("valid"), dict)
    return "[encoder]" if is_encoder else "[translation]"


class _Best(Stored):
    """The validation that chose a run's weights."""

    value: Number | None = None


class _Metrics(Stored):
    """What commands read of metrics.json."""

    finished: bool
    command: str | None = None
    seed: int | None = None
    batches_a_step: Annotated[int, Field(ge=1, le=LARGEST)] = 1
    parameters: Count = 0
    corpora: dict[str, str] = Field({})
    tokenizers: dict[str, str] = Field({})
    versions: dict[str, str] = Field({})
    git_commit: str | None = None
    asked: dict[str, Any] = Field({})
    averaged: list[str] = Field([])
    start_weights: str | None = None
    steps: Count = 0
    wall_time_seconds: Number = 0.0
    validations_since_best: Count = 0
    best: _Best | None = None
    target_tokens_per_second: Number | None = None
    peak_memory_mib: Number | None = None
    scores: Annotated[
        Annotated[dict[str, list[ScoreRecord]], Tag("[translation]")] | Annotated[_EncoderScores, Tag("[encoder]")],
        Discriminator(_kind_of_scores),
    ] = Field({})


class RunDirectory:
    """Contains config.yaml, tokenizer.model (or one per language), model.safetensors, metrics.json, logs/ and
    checkpoints/.

    Later commands write evaluations and exports to `results`, which is the same folder, or for a model that is included
    in the package, the folder of its name in runs/included, which no training run uses.
    """

    PARTS: ClassVar[tuple[str, ...]] = ("model", "search", "direction", "data")
    """Keys that the configuration of every such run contains."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.weights = path / _WEIGHTS
        self.checkpoints = path / "checkpoints"
        included = included_name(path)
        self.results = path if included is None else Path("runs", "included", included)
        self.exports = self.results / "exports"
        self.nonfinite = path / "nonfinite.json"
        self.words, self.dictionary_file = path / _WORDS, path / _DICTIONARY
        self.logs = path / "logs"

    @property
    def _in_shell(self) -> str:
        """The path as an argument of a command, for a message that gives one."""
        return shlex.quote(str(self.path))

    @property
    def started(self) -> bool:
        """Whether the folder holds a run, finished or not."""
        return (self.path / _CONFIG).is_file()

    @property
    def finished(self) -> bool:
        """Whether training has ended, with the best weights saved and scored."""
        return self.started and self.weights.is_file() and self.metrics().get("finished", False)

    @property
    def best_value(self) -> float | None:
        """The validation score of the run's weights; None if training has not ended or did not validate."""
        best = self.metrics().get("best") if self.finished else None
        return None if best is None else best.get("value")

    def state(self) -> tuple[bytes, ...]:
        """The contents of config.yaml and metrics.json, which change when a command trains or replaces the run."""
        files = (self.path / name for name in (_CONFIG, _METRICS))
        return tuple(file.read_bytes() for file in files if file.is_file())

    def require_finished(self) -> None:
        """Raises Mistake if this is not the directory of a finished run."""
        if not self.path.is_dir():
            exists = os.path.lexists(self.path)
            reason = f"{self.path} is {not_a_folder(self.path)}" if exists else f"There is no folder {self.path}"
            included = " or ".join(included_models())
            or_included = f", or a model that comes with nmt: {included}" if included else ""
            raise Mistake(f"{reason}; name the folder that training printed{or_included}.")
        if not self.started:
            raise Mistake(
                f"{self.path} is not a run directory: it has no {_CONFIG}. Name the folder that training printed."
            )
        if not (self.path / _METRICS).is_file() and self.weights.is_file():
            raise Mistake(
                f"{self.path} has no {_METRICS}: copy it from the original run, together with {_CONFIG} and the "
                "tokenizer files."
            )
        if not self.metrics().get("finished", False):
            raise Mistake(
                f"The run in {self.path} is not finished; resume it with "
                f"'python -m nmt.{'pretrain' if self.pretrained else 'train'} run_dir={self._in_shell} resume=true'."
            )
        if not self.weights.is_file():
            raise Mistake(
                f"The weights of the finished run in {self.path} are missing: copy {self.weights.name} back, or train "
                "the run again with overwrite=true."
            )

    def check_links(self, training: bool = False) -> None:
        """Raises Mistake if a folder in which commands write, or in which training does, is a link out of the run."""
        if not training:
            check_links(self.results, ["evaluation", "exports"])
            return
        check_links(self.path, [name for name in _FOLDERS if name != "logs"])
        # Only the folder itself: each training writes to a new folder there, and Weights & Biases leaves links to its
        # own files elsewhere, which are broken in a copy of the run.
        check_link(self.logs, self.path)

    def require_free(self, overwrite: bool, *, key: str = "run_dir", resumable: bool = True) -> None:
        """Raises Mistake if a new run would overwrite something; `overwrite` allows it to replace a run.

        `key` names the folder on the command line; `resumable` says whether the command can resume a run.
        """
        if self.started and not overwrite:
            hint = " (resume=true continues it)" if resumable else ""
            state = "a finished run" if self.finished else f"an unfinished run{hint}"
            raise Mistake(f"{self.path} holds {state}; choose another {key}, or set overwrite=true to delete it.")
        if not self.started and self.path.exists() and not self._is_free():
            raise Mistake(f"{self.path} exists but is not a run directory; choose another {key}.")

    def _is_free(self) -> bool:
        """Whether the folder is empty, except for what a run that was killed at its start left of its config.yaml."""
        return self.path.is_dir() and all(is_part(path, _CONFIG) for path in self.path.iterdir())

    def clear(self) -> None:
        """Deletes the files of a run and no others."""
        for folder in _FOLDERS:
            remove(self.path / folder)
        remove_parts(self.path)
        tokenizers = [path.name for path in self.path.glob("tokenizer.*.model")]
        others = (self.weights.name, self.nonfinite.name, _METRICS, _JOINT, _WORDS, _DICTIONARY, _CONFIG)
        for name in (*tokenizers, *others):
            (self.path / name).unlink(missing_ok=True)

    def write_config(self, config: dict[str, Any]) -> None:
        """Writes the configuration, which marks the run as started."""
        text = yaml.safe_dump(config, sort_keys=False, allow_unicode=True)
        write_bytes(self.path / _CONFIG, text.encode())

    @property
    def pretrained(self) -> bool:
        """Whether the folder holds a run of nmt.pretrain, finished or not.

        Raises Mistake if config.yaml is damaged.
        """
        return self.started and _MASKING in self._stored()

    def config(self) -> dict[str, Any]:
        """The stored configuration.

        Raises Mistake if the file is damaged, or if it configures something else, such as a pretrained encoder.
        """
        config = self._stored()
        self._check_kind(config)
        missing = [part for part in self.PARTS if not config.get(part)]
        if missing:
            raise Mistake(
                f"{self.path / _CONFIG} is not the configuration of a run: it lacks {', '.join(missing)}; "
                "name the folder that training printed."
            )
        return normal_form(config)

    def _check_kind(self, config: Mapping[str, Any]) -> None:
        if _MASKING in config:
            raise Mistake(
                f"{self.path} holds a pretrained encoder, which cannot translate: train a translation model from it "
                f"with 'python -m nmt.train start_from={self._in_shell}'."
            )

    def _stored(self) -> dict[str, Any]:
        """The contents of config.yaml; empty if it is not a dictionary."""
        config = read_plain_yaml(self.path / _CONFIG)
        return config if isinstance(config, dict) else {}

    def write_tokenizers(self, tokenizers: TokenizerPair, direction: Direction | None) -> None:
        """Writes tokenizer.model, or tokenizer.LANGUAGE.model for each side of a direction."""
        for name, model in _tokenizer_files(tokenizers, direction).items():
            write_bytes(self.path / name, model)

    def tokenizers(
        self, direction: Direction | None, metrics: Mapping[str, Any], tone_marks: ToneMarks | None = None
    ) -> TokenizerPair:
        """The stored tokenizers; both have the same model if they are joint.

        `tone_marks` is the run's tokenizer.tone_marks, which the files do not contain: the style of the Vietnamese side
        of the direction.

        Raises Mistake if a file is missing, or if it is damaged or is not the one recorded in the
        run's metrics, because a model with the wrong tokenizer produces garbage.
        """
        recorded = metrics.get("tokenizers", {})
        joint = _JOINT in recorded if recorded else (self.path / _JOINT).is_file()
        loaded = []
        for name in [_JOINT] if joint else _tokenizer_names(direction):
            file = self.path / name
            if not file.is_file():
                raise Mistake(f"{self.path} has no {name}: copy it back, or train the run again.")
            check_size(file, _LARGEST_TOKENIZER)
            if name in recorded and file_digest(file) != recorded[name]:
                raise Mistake(
                    f"{file} is not the tokenizer of this run (its SHA-256 is not the one in {_METRICS}): copy the "
                    "run's own file back, or train the run again."
                )
            loaded.append(Tokenizer.load(file))
        pair = TokenizerPair(loaded[0], loaded[-1])
        if direction is None:
            return pair
        return pair.in_style(tone_marks, source=direction.source, target=direction.target)

    def write_source_words(self, words: Collection[str]) -> bool:
        """Writes the case-folded words of the training sources.

        Returns False, without writing, if there are no words or too many.
        """
        content = "".join(f"{word}\n" for word in sorted(words)).encode()
        if not 0 < len(content) <= _MOST_WORD_BYTES:
            return False
        write_bytes(self.words, content)
        return True

    def source_words(self) -> frozenset[str] | None:
        """The words of the training sources, case-folded; None if they are not stored.

        Raises Mistake if their file cannot be read.
        """
        if not self.words.is_file():
            return None
        check_size(self.words, _MOST_WORD_BYTES)
        return frozenset(read_lines(self.words))

    def read_dictionary(self) -> Dictionary:
        """The words of dictionary.tsv; none if the run does not have this file.

        Raises Mistake if the file cannot be used.
        """
        if not os.path.lexists(self.dictionary_file):
            return NO_DICTIONARY
        if self.dictionary_file.is_file():
            check_size(self.dictionary_file, _MOST_DICTIONARY_BYTES, "Keep the words that matter most.")
        return Dictionary.load(self.dictionary_file)

    def write_dictionary(self, dictionary: Dictionary) -> None:
        """Writes dictionary.tsv, unless the dictionary is empty."""
        if dictionary:
            write_bytes(self.dictionary_file, dictionary.table().encode())

    def write_metrics(self, metrics: dict[str, Any]) -> None:
        """Replaces metrics.json."""
        write_json(self.path / _METRICS, metrics)

    def metrics(self) -> dict[str, Any]:
        """The contents of metrics.json; empty before it is written. Raises Mistake if it is not a run's record."""
        file = self.path / _METRICS
        return read_stored(file, _Metrics) if file.is_file() else {}


class EncoderDirectory(RunDirectory):
    """The run directory of nmt.pretrain: a pretrained encoder and its tokenizer."""

    PARTS: ClassVar[tuple[str, ...]] = ("model", _MASKING, "data")

    def _check_kind(self, config: Mapping[str, Any]) -> None:
        if "search" in config:
            raise Mistake(
                f"{self.path} holds a translation model, not a pretrained encoder: resume it with 'python -m "
                f"nmt.train run_dir={self._in_shell} resume=true', or choose another run_dir."
            )


def tokenizer_hashes(tokenizers: TokenizerPair, direction: Direction | None) -> dict[str, str]:
    """SHA-256 of each tokenizer file by its name in the run directory, which metrics.json stores under 'tokenizers'."""
    files = _tokenizer_files(tokenizers, direction)
    return {name: hashlib.sha256(model).hexdigest() for name, model in files.items()}


def _tokenizer_files(tokenizers: TokenizerPair, direction: Direction | None) -> dict[str, bytes]:
    names = [_JOINT] if tokenizers.joint else _tokenizer_names(direction)
    return {name: tokenizer.model for name, tokenizer in zip(names, tokenizers, strict=False)}


def _tokenizer_names(direction: Direction | None) -> list[str]:
    """One file name for each side of a direction; without a direction, there is only a joint vocabulary."""
    if direction is None:
        return [_JOINT]
    return [f"tokenizer.{language}.model" for language in (direction.source, direction.target)]
