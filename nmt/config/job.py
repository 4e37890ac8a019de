"""A job of a command, and the record of how it ended."""

from dataclasses import dataclass
from pathlib import Path
from typing import Generic, NamedTuple

from nmt.config.nodes import Config
from nmt.config.schema import Settings


@dataclass(frozen=True)
class Job(Generic[Settings]):
    """One execution of a command: its configuration, and what the command line set."""

    config: Config
    """Plain values, as stored in a run directory."""
    settings: Settings
    """The validated configuration."""
    given: tuple[str, ...]
    """Dotted keys that the command line set; a chosen group counts as one."""
    command: str
    """The command line that runs the job again."""
    sweep_dir: Path | None
    """The folder for this job's files in a sweep; None outside of sweeps."""


class JobRecord(NamedTuple):
    """A job of a sweep: its number, its folder, its overrides, and how it ended."""

    number: int
    folder: str
    overrides: list[str]
    exit_code: int
    error: str
    """The error message; empty if the job succeeded."""
