"""Where the configuration of a training run comes from: a new command, another run, or the run's own directory."""

import shlex
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from nmt.config.keys import value_at
from nmt.config.messages import written
from nmt.config.nodes import Config
from nmt.config.schema import NOT_STORED, LoopSettings
from nmt.errors import Mistake
from nmt.runs.encoder import LoadedEncoder
from nmt.runs.load import LoadedRun
from nmt.training.limits import LIMITS

MACHINE = ("trainer.devices", "trainer.num_nodes", "trainer.strategy", "trainer.accelerator")
"""The keys that determine where to train. The batches of a step are divided among the processes."""
LOGGER = "logger"
MAY_CHANGE = (*LIMITS, *MACHINE, "max_skipped_steps", LOGGER)
"""The keys that may change when a run is resumed. All except the logger can change its result."""
BATCHES = ("batching.batch_tokens", "trainer.accumulate_grad_batches")
ADAPTED = (*BATCHES, "tokenizer.size", "data.train")
"""The keys that a run may change by itself: to save memory, to suit the number of processes or a small corpus, or to
name the corpora that match a pattern.
"""

COMPUTED = ("schedule.steps", "schedule.dim", "initializer.dim")
"""The keys that the file of a choice computes from other keys, such as schedule.steps from trainer.max_steps."""

PretrainedRun = LoadedRun | LoadedEncoder
"""A finished run whose weights a new run starts from: a translation model or a pretrained encoder."""

SettingsT = TypeVar("SettingsT", bound=LoopSettings)


@dataclass(frozen=True)
class ConfigOrigin(Generic[SettingsT]):
    """The configuration of a run and where it comes from."""

    config: Config
    """The configuration, with the changes that save memory."""
    settings: SettingsT
    """The same configuration, validated."""
    original: Config
    """The configuration of the command line, or the stored one, before anything was inherited or changed."""
    start: PretrainedRun | None = None
    """The run that start_from names; not loaded yet for a resumed run, which rarely needs it."""
    metrics: Config = field(default_factory=dict)
    """The record of the run to resume; empty for a new run."""
    finished: bool = False
    """Whether the run to resume is finished."""

    def record(self, command: str, config: Config) -> Config:
        """What metrics.json says about a run's command and about the values in ADAPTED that were asked for.

        `command` is this command line, and `config` the configuration that the run stores.
        """
        return {
            "command": changed_command(self.metrics.get("command", command), self.original, config),
            "asked": self.metrics.get("asked", {key: value_at(self.original, key) for key in ADAPTED}),
        }


def stored_keys(config: Config) -> Config:
    """The part of a configuration that is stored in a run directory."""
    return {key: value for key, value in config.items() if key not in NOT_STORED}


def changed_command(command: str, before: Config, after: Config) -> str:
    """A single command that gives the same result: the run's own command with the changed settings."""
    changed = {
        key: value_at(after, key)
        for key in (*MAY_CHANGE, *BATCHES)
        if key != LOGGER and value_at(after, key) != value_at(before, key)
    }
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise Mistake(
            f"The command that metrics.json records, {command!r:.100}, is not a command line, because its quotes do "
            "not match: copy the run's own metrics.json back, or start a new run."
        ) from error
    kept = [word for word in words if word.lstrip("+").split("=")[0] not in {*changed, "resume"}]
    given = [f"{key}={written(value)}" for key, value in changed.items()]
    # A schedule defined by the length of training keeps its original length.
    if "trainer.max_steps" in changed and (steps := value_at(after, "schedule.steps")) is not None:
        kept = [word for word in kept if not word.startswith("schedule.steps=")]
        given.append(f"schedule.steps={steps}")
    return shlex.join([*kept, *given])
