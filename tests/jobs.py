"""Jobs of commands without a command line."""

from typing import Any

from nmt.config.job import Job
from nmt.config.schema import COMMANDS, validated


def job_of(name: str, config: dict[str, Any], given: tuple[str, ...] = (), command: str = "") -> Job[Any]:
    """The job of a command with a composed configuration."""
    return Job(config, validated(COMMANDS[name], config), given, command, None)
