"""What a command is asked to do, and how it ended."""

from dataclasses import dataclass
from pathlib import Path
from typing import Generic, NamedTuple

from nmt.config.nodes import Config
from nmt.config.schema import Settings


@dataclass(frozen=True)
class Job(Generic[Settings]):
    """One execution of a command: its configuration and what the command line said itself."""

    config: Config
    """As plain values, which a run stores."""
    settings: Settings
    """The same, validated."""
    given: tuple[str, ...]
    """Dotted keys that the command line set; a chosen group counts as one."""
    command: str
    """The command line that runs it again."""
    sweep_dir: Path | None
    """Where a sweep wants this job's files; None outside of sweeps."""


class JobRecord(NamedTuple):
    """A job: its number, its folder, what it was asked for, and how it ended."""

    number: int
    folder: str
    overrides: list[str]
    exit_code: int
    error: str
    """A sentence; empty when the job ended well."""
