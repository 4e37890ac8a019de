"""Jobs of commands without a command line."""

from typing import Any

from nmt.cli.compose import configuration
from nmt.config.job import Job
from nmt.config.schema import COMMANDS, RunSettings, validated


def job_of(name: str, config: dict[str, Any], given: tuple[str, ...] = (), command: str = "") -> Job[Any]:
    """The job of a command with a composed configuration."""
    return Job(config, validated(COMMANDS[name], config), given, command, None)


def run_settings(*arguments: str, **changes: Any) -> RunSettings:
    """What a run directory stores of nmt.train with these arguments; `changes` replace keys of `data`."""
    config = configuration("train", [*arguments, "run_dir=unused"])
    stored = {key: config[key] for key in RunSettings.model_fields if key in config}
    return validated(RunSettings, {**stored, "data": {**stored["data"], **changes}})
