"""The values of a training configuration that this package uses itself, checked before anything is made."""

import math
from dataclasses import dataclass
from typing import Any

from lightning.fabric.utilities.exceptions import MisconfigurationException
from lightning.pytorch.callbacks import Timer

from nmt.config.direction import Direction
from nmt.config.keys import NOTHING, value_at
from nmt.config.messages import check_share, unknown
from nmt.config.nodes import Config
from nmt.data.filters import Filters

# What is in data beside corpora.
_NO_CORPORA = ("name", "tokenized", "detokenize", "sampling_temperature", "concat_prob")
# Metric, what is better, and the sign that makes less better.
_MONITORS = {"bleu": ("valid_bleu", "max", -1), "loss": ("valid_loss", "min", 1)}

_WITHOUT: Config = {
    "max_skipped_steps": 0,
    "objective": {"_target_": "nmt.training.objectives.CrossEntropy"},
    "initializer": {"_target_": "nmt.models.initializers.as_made", "_partial_": True},
    "word_dropout": 0.0,
    "subword_sampling": None,
    "start_from": None,
}
_WITHOUT_IN: dict[str, Config] = {
    "validation": {"probes": 0},
    "data": {"tokenized": None, "detokenize": []},
    "filters": {"drop_swapped": False},
}
_FORMER = (
    "The stored configuration has no {key}: an older version of nmt began the run; begin again with overwrite=true."
)


def completed(stored: Config) -> Config:
    """A stored configuration with what an older version of nmt did before it could do anything else."""
    sections = {name: without | stored[name] for name, without in _WITHOUT_IN.items()}
    # Lightning's way to write that there is no limit, which used to be taken over.
    lengths = {key: None for key in ("max_steps", "max_epochs") if stored["trainer"].get(key) == -1}
    return _WITHOUT | stored | sections | {"trainer": stored["trainer"] | lengths}


def training_prefixes(data: Config) -> list[Any]:
    """The prefixes of the training corpora: data.train is one of them or a list."""
    return data["train"] if isinstance(data["train"], list) else [data["train"]]


def becomes_plain(data: Config, prefix: str) -> bool:
    """Whether the corpus is read as plain text, because data.detokenize names it."""
    return prefix in (data.get("detokenize") or [])


def held_out_prefixes(data: Config) -> dict[str, str]:
    """The prefixes of the validation and test corpora by their names."""
    return {key: prefix for key, prefix in data.items() if key not in (*_NO_CORPORA, "train") and prefix}


@dataclass(frozen=True)
class Monitor:
    """The validation metric that decides which checkpoint is best: better is 'min' or 'max'."""

    metric: str
    better: str
    sign: int


def monitor_of(config: Config) -> Monitor:
    """What validation.monitor names. Raises ValueError for what there is not."""
    name = config["validation"]["monitor"]
    if name not in _MONITORS:
        raise ValueError(unknown("validation.monitor", str(name), _MONITORS))
    return Monitor(*_MONITORS[name])


@dataclass(frozen=True)
class Splits:
    """The corpora of a run: prefixes, see nmt.data.corpus. Those in `detokenize` become plain text first."""

    train: list[str]
    valid: str
    tests: dict[str, str]
    detokenize: tuple[str, ...] = ()

    @property
    def held_out(self) -> list[str]:
        """Validation and test corpora."""
        return [self.valid, *self.tests.values()]


@dataclass(frozen=True)
class Settings:
    """Raises ValueError for a value that cannot be used, naming its key."""

    config: Config

    def __post_init__(self) -> None:
        for key in ("batching.batch_tokens", "trainer.accumulate_grad_batches", "trainer.log_every_n_steps"):
            self.positive(key)
        for key in ("validation.every", "validation.sentences", "validation.patience", "checkpoints.keep"):
            self.positive(key)
        check_share("validation.max_time_fraction", self.config["validation"]["max_time_fraction"])
        if self.config["trainer"]["limit_val_batches"] == 0:
            raise ValueError(
                "trainer.limit_val_batches is 0, but a training keeps the weights that it has validated: give null, "
                "and a larger validation.every for fewer validations."
            )
        for key in ("seed", "batching.workers", "checkpoints.recent", "validation.probes", "max_skipped_steps"):
            self._whole(key, at_least=0)
        if [self.max_steps, self.max_epochs, self.max_seconds] == [None, None, None]:
            raise ValueError(
                "Training would never end: give trainer.max_steps, trainer.max_epochs or trainer.max_time."
            )
        if "ema_decay" not in self.config:
            raise ValueError(_FORMER.format(key="ema_decay"))
        decay = self.config["ema_decay"]
        if decay is not None and (not isinstance(decay, float) or not 0 < decay < 1):
            raise ValueError(f"ema_decay is {decay}; it must be a number between 0 and 1, such as 0.999, or null.")
        rate = self.config["optimizer"].get("lr", 1.0)
        if isinstance(rate, bool) or not isinstance(rate, (int, float)) or not 0 < rate < math.inf:
            raise ValueError(f"optimizer.lr is {rate}; it must be a number above 0, such as 0.001.")
        if (share := self.config["data"]["concat_prob"]) != 0:
            check_share("data.concat_prob", share, off="0")
        temperature = self.config["data"]["sampling_temperature"]
        if isinstance(temperature, bool) or not 0 < temperature < math.inf:
            raise ValueError(f"data.sampling_temperature is {temperature}; it must be a number above 0, such as 5.")
        if (alpha := self.config["subword_sampling"]) is not None:
            check_share("subword_sampling", alpha, off="null")
        _ = (self.direction, self.splits, self.filters, self.monitor)

    @property
    def direction(self) -> Direction:
        return Direction.parse(str(self.config["direction"]))

    @property
    def splits(self) -> Splits:
        data = self.config["data"]
        train = training_prefixes(data)
        tests = {key: prefix for key, prefix in held_out_prefixes(data).items() if key != "valid"}
        if not train:
            raise ValueError("data.train is empty; give at least one PREFIX, as in data.train=[my/train].")
        for key, prefix in {"train": train[0], "valid": data["valid"], **tests}.items():
            if not isinstance(prefix, str):
                raise ValueError(f"data.{key} must be the PREFIX of aligned files, not '{prefix}'.")
        return Splits([str(prefix) for prefix in train], data["valid"], tests, self._detokenize())

    def _detokenize(self) -> tuple[str, ...]:
        data = self.config["data"]
        tokenized, detokenize = data.get("tokenized"), data.get("detokenize") or []
        if tokenized not in (None, True, False):
            raise ValueError(f"data.tokenized is {tokenized}; it must be true, false or null.")
        if not isinstance(detokenize, list):
            raise ValueError(f"data.detokenize is {detokenize}; it must be a list, as in data.detokenize=[my/train].")
        if other := [prefix for prefix in detokenize if not isinstance(prefix, str)]:
            raise ValueError(f"data.detokenize has {other[0]}; it must be PREFIXES of corpora, as in [my/train].")
        if tokenized and detokenize:
            raise ValueError(
                "data.tokenized=true scores tokens, and data.detokenize makes plain text: give data.tokenized=false, "
                "or data.detokenize=[]."
            )
        return tuple(detokenize)

    @property
    def filters(self) -> Filters:
        return Filters(**self.config["filters"])

    @property
    def monitor(self) -> Monitor:
        return monitor_of(self.config)

    @property
    def max_steps(self) -> int | None:
        """None: no limit."""
        steps = self.config["trainer"]["max_steps"]
        return None if steps is None else self.positive("trainer.max_steps", or_none="no limit")

    @property
    def max_epochs(self) -> int | None:
        """None: no limit."""
        epochs = self.config["trainer"]["max_epochs"]
        return None if epochs is None else self.positive("trainer.max_epochs", or_none="no limit")

    @property
    def max_seconds(self) -> float | None:
        """None: no limit."""
        limit = self.config["trainer"]["max_time"]
        if limit is None:
            return None
        try:
            return Timer(limit).time_remaining()
        except (MisconfigurationException, TypeError, AttributeError) as error:
            raise ValueError(
                f"trainer.max_time is '{limit}'; write days:hours:minutes:seconds, as in 00:01:30:00."
            ) from error

    def reached(self, record: Config) -> list[str]:
        """The limits, epochs aside, that a training has reached by its record in metrics.json, and what it has used."""
        steps, seconds, validations = (
            record.get(key, 0) for key in ("steps", "wall_time_seconds", "validations_since_best")
        )
        patience, reached = self.positive("validation.patience"), []
        if self.max_steps is not None and steps >= self.max_steps:
            reached.append(f"trainer.max_steps={self.max_steps} ({steps} steps)")
        if self.max_seconds is not None and seconds >= self.max_seconds:
            reached.append(f"trainer.max_time={self.config['trainer']['max_time']} ({seconds:.0f} seconds)")
        if validations >= patience:
            reached.append(f"validation.patience={patience} ({validations} validations since the best)")
        return reached

    def positive(self, key: str, or_none: str = "") -> int:
        """The whole number of at least 1 under a dotted key; `or_none` is what null stands for there."""
        return self._whole(key, at_least=1, or_none=or_none)

    def _whole(self, key: str, at_least: int, or_none: str = "") -> int:
        value = value_at(self.config, key, NOTHING)
        if value is NOTHING:
            raise ValueError(_FORMER.format(key=key))
        if not isinstance(value, int) or isinstance(value, bool) or value < at_least:
            without = f", or null for {or_none}" if or_none else ""
            raise ValueError(f"{key} is {value}; it must be a whole number of at least {at_least}{without}.")
        return value
