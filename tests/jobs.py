"""Jobs of commands without a command line."""

from typing import Any

from nmt.cli.compose import configuration
from nmt.cli.settings_class import settings_class
from nmt.config.job import Job
from nmt.config.schema import RunSettings, validated

HIERARCHICAL: dict[str, object] = {
    "context": "hierarchical",
    "context__sentences": 2,
    "context__model__num_heads": 2,
    "context__model__ffn_dim": 11,
    "trainer__max_steps": 4,
    "validation__every": 2,
    "validation__probes": 1,
    "batching__batch_tokens": 211,
}
JOINED: dict[str, object] = {
    "context": "concatenate",
    "context__sentences": 2,
    "trainer__max_steps": 4,
    "validation__every": 2,
    "batching__batch_tokens": 211,
}


def job_of(name: str, config: dict[str, Any], given: tuple[str, ...] = (), command: str = "") -> Job[Any]:
    """The job of a command with a composed configuration."""
    return Job(config, validated(settings_class(name), config), given, command, None)


def run_settings(*arguments: str, **changes: Any) -> RunSettings:
    """What a run directory stores of nmt.train with these arguments; `changes` replace keys of `data`."""
    config = configuration("train", [*arguments, "run_dir=unused"])
    stored = {key: config[key] for key in RunSettings.model_fields if key in config}
    return validated(RunSettings, {**stored, "data": {**stored["data"], **changes}})
