"""From arguments to a job: Hydra composes the YAML files, and the schema validates the result."""

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path

import hydra
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from nmt.cli.arguments import for_hydra
from nmt.cli.configs import Composed, choices_in, composed_config, is_group, one_sentence, plain_config
from nmt.cli.overrides import jobs_of_sweep, parsed
from nmt.cli.settings_class import settings_class
from nmt.config.job import Job
from nmt.config.keys import normal_form, value_at
from nmt.config.nodes import CONFIGS, Config
from nmt.config.schema import check_node, validated
from nmt.errors import Mistake


def job_of(name: str, arguments: Sequence[str], typed: Sequence[str], sweep_dir: Path | None = None) -> Job:
    """The job that arguments in Hydra's syntax describe; `typed` are the arguments as the user typed them.

    Raises Mistake for an argument, a key or a value that cannot be used.
    """
    overrides = parsed(name, arguments)
    config = normal_form(plain_config(composed_config(name, overrides), whole=True))
    settings = validated(settings_class(name), config)  # before the nodes, which may contain copies of an invalid value
    if sweep_dir is None and getattr(settings, "sweep_dir", None) is not None:
        raise Mistake("sweep_dir is only for a sweep: add -m, or write run_dir= for a single run.")
    groups = [override for override in overrides if is_group(override)]
    # Values outside the nodes can be defaults within them: trainer.max_steps is the default of schedule.steps.
    nodes = {key: config[key] for key in config if isinstance(getattr(settings, key, None), dict)}
    if isinstance(context_model := value_at(config, "context.model"), dict):
        nodes["context.model"] = context_model
    inside = tuple(f"{key}." for key in nodes)
    outside = [
        override for override in overrides if override in groups or not f"{override.key_or_group}.".startswith(inside)
    ]
    defaults = plain_config(composed_config(name, outside), whole=False)
    for key, node in nodes.items():
        default = value_at(defaults, key)
        if "_target_" in node and isinstance(default, dict):
            # A document model may lack the attention at one of its sides.
            omitted = [side for side in ("encoder", "decoder") if key == "context.model" and node.get(side) is None]
            check_node(key, node, default | dict.fromkeys(omitted))
    values = [override.key_or_group for override in overrides if override not in groups]
    return Job(
        config=config,
        settings=settings,
        given=(*(_chosen_key(group, config) for group in groups), *values),
        command=shlex.join(["python", "-m", f"nmt.{name}", *typed]),
        sweep_dir=sweep_dir,
    )


def configuration(name: str, arguments: Sequence[str]) -> Config:
    """The configuration of a command before validation; a missing value is '???'.

    Raises Mistake for an argument that cannot be read, and for a key or a choice that does not exist.
    """
    return plain_config(composed_config(name, parsed(name, for_hydra(arguments, settings_class(name)))), whole=False)


def choices_and_values(name: str, overrides: Sequence[Override]) -> tuple[dict[str, str | None], Config]:
    """The choice of each group, and the configuration with unresolved interpolations."""
    composed = composed_config(name, overrides)
    plain: Config = OmegaConf.to_container(composed, resolve=False)  # type: ignore[assignment]
    return choices_in(composed), plain


def run_hydra(name: str, task: Callable[[Composed], object], overrides: Sequence[Override] = ()) -> None:
    """Runs Hydra's own command line on sys.argv: it calls `task` for each job of a sweep, or shows the configuration.

    Raises Mistake for anything that Hydra rejects; the sweep's `overrides` help to find the reason.
    """
    try:
        hydra.main(version_base="1.3", config_path=str(CONFIGS), config_name=name)(task)()
    except (HydraException, OmegaConfBaseException) as error:
        composed_config(name, [override for override in overrides if override.is_hydra_override()])
        for job in jobs_of_sweep(overrides):  # the first invalid job raises its own error
            composed_config(name, parsed(name, job))
        raise Mistake(one_sentence(error)) from error


def _chosen_key(choice: Override, config: Config) -> str:
    """The key that a choice sets as a whole: for norm@model 'model.norm', for scorer@encoder_self the site."""
    package: str | None = choice.package
    if package is None:
        return str(choice.key_or_group)
    return f"{package}.{choice.key_or_group}" if "_target_" in (config.get(package) or {}) else package
