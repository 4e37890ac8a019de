"""From a command line to a plain configuration: the only module that knows hydra and omegaconf."""

import importlib
import os
import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NoReturn

import hydra
from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from hydra.types import RunMode
from omegaconf import OmegaConf
from omegaconf.errors import InterpolationResolutionError, MissingMandatoryValue, OmegaConfBaseException

from nmt.cli.arguments import gathered, is_sweep, single_values
from nmt.cli.help import help_text
from nmt.cli.log import log_to_standard_error
from nmt.cli.sweep import Records
from nmt.config.job import Job, JobRecord
from nmt.config.messages import unknown
from nmt.config.nodes import CONFIGS, Config
from nmt.config.schema import COMMANDS, Keys, check_node, validated
from nmt.errors import exit_code, report

# OmegaConf's DictConfig, whose own annotations the type checker of the tests objects to.
Composed = Any

_HYDRA_FLAGS = ("--multirun", "--resolve", "--cfg", "--info", "--package", "--run", "--version", "--hydra-help")


def command(
    name: str, description: str | None, run: str, after_sweep: str | None = None, words: str | None = None
) -> NoReturn:
    """Runs a command of the application with the arguments in sys.argv, and exits.

    What `after_sweep`, such a function too, says of the jobs of a sweep is printed after them, however they ended.
    Arguments that are no key=value become the list under the key `words`, where a command has one.

    `name` is its YAML file, `run` the function that takes the Job, as 'module:function'. The module is imported only
    when the arguments have been read, so that a mistake in them is told before the seconds that importing torch takes.
    """
    # oneDNN, which multiplies bfloat16 on CPUs, keeps what it made for each shape of product, and sentences have many:
    # gigabytes in a long training, and no time gained (docs/speed.md). It reads this when torch first uses it.
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "64")
    log_to_standard_error()
    if {"-h", "--help"} & set(sys.argv[1:]):
        sys.exit(exit_code(lambda: _help(name, description or "")))
    sys.exit(exit_code(lambda: _run(name, run, after_sweep, words)))


def configuration(name: str, overrides: Sequence[str]) -> Config:
    """The configuration of a command, without running it; a missing value is '???', and nmt.train needs a run_dir.

    Raises ValueError for an override that cannot be read, and for a key or a choice that is not there.
    """
    try:
        with initialize_config_dir(str(CONFIGS), version_base="1.3"):
            return _plain(compose(name, list(overrides)), whole=False)
    except (HydraException, OmegaConfBaseException) as error:
        raise ValueError(_sentence(error)) from error


def _help(name: str, description: str) -> int:
    try:
        with _told_in_a_sentence():
            composed = _composed(name, single_values(sys.argv[1:]))
    except ValueError:
        print(help_text(CONFIGS, name, description, *_composed(name, [])))
        raise
    print(help_text(CONFIGS, name, description, *composed))
    return 0


@contextmanager
def _told_in_a_sentence() -> Iterator[None]:
    """Turns what Hydra refuses of the command line into ValueError."""
    try:
        yield
    except (HydraException, OmegaConfBaseException) as error:
        raise ValueError(_sentence(error)) from error
    except ValueError as error:
        nothing = [argument for argument in sys.argv[1:] if argument.endswith("=null")]
        if nothing and "Config group override" in str(error):
            raise ValueError(f"'{nothing[0]}' chooses nothing: name one of its choices, see --help.") from error
        raise


def _composed(name: str, overrides: list[str]) -> tuple[dict[str, str | None], Config]:
    """What is chosen of each group but Hydra's own, and the configuration, with interpolations as they stand."""
    with initialize_config_dir(str(CONFIGS), version_base="1.3"):
        config = compose(name, overrides, return_hydra_config=True)
    choices = {
        group: choice for group, choice in config.hydra.runtime.choices.items() if not group.startswith("hydra/")
    }
    plain: Config = OmegaConf.to_container(config, resolve=False)  # type: ignore[assignment]
    return choices, plain


def _run(name: str, run: str, after_sweep: str | None, words: str | None) -> int:
    if words:
        sys.argv[1:] = gathered(sys.argv[1:], words)
    # Hydra prints and exits 1 by itself otherwise.
    os.environ["HYDRA_FULL_ERROR"] = "1"
    sweep = is_sweep(sys.argv[1:])
    for argument in sys.argv[1:]:
        if argument.startswith("--") and argument not in _HYDRA_FLAGS:
            written = argument.lstrip("-") if "=" in argument else f"{argument.lstrip('-')}=VALUE"
            raise ValueError(f"Unknown option '{argument}': write key=value without dashes, '{written}'.")

    with TemporaryDirectory() as folder:
        # A launcher may run the jobs in other processes: what they leave behind tells how they ended.
        records = Records(Path(folder))

        def job(config: Composed) -> None:
            _outcome(config, name, run, records)

        try:
            with _told_in_a_sentence():
                hydra.main(version_base="1.3", config_path=str(CONFIGS), config_name=name)(job)()
        finally:
            # Nothing began where Hydra refuses the whole sweep; a child of distributed training repeats the command.
            if sweep and after_sweep and records.read() and "LOCAL_RANK" not in os.environ:
                print(_function(after_sweep)(records.read()))
        codes = [record.exit_code for record in records.read()]
    return max(codes, default=0, key=lambda code: (code == 1, code))


def _outcome(config: Composed, name: str, run: str, records: Records) -> None:
    """Runs a job and reports its error here: Hydra would add a line of its own, and end a sweep without the others."""
    known = HydraConfig.get()
    in_sweep = known.mode == RunMode.MULTIRUN
    folder = Path(known.runtime.output_dir)
    # Not resolved: an override may hold an interpolation that leads nowhere.
    overrides: Any = OmegaConf.to_container(known.overrides.task, resolve=False)
    begun = JobRecord(known.job.num if in_sweep else 0, str(folder), overrides, 1, "not finished")
    records.write(begun)
    code, error = _attempt(config, name, run, folder if in_sweep else None)
    records.write(begun._replace(exit_code=code, error=error))


def _attempt(config: Composed, name: str, run: str, sweep_dir: Path | None) -> tuple[int, str]:
    """Runs a job: its exit code and the error, which has been reported."""
    prefix = f"error in {' '.join(HydraConfig.get().overrides.task)}" if sweep_dir else "error"
    try:
        described = _describe(config, name, sweep_dir)
        _function(run)(described)
    except (HydraException, OmegaConfBaseException) as error:
        print(f"{prefix}: {_sentence(error)}", file=sys.stderr)
        return 2, _sentence(error)
    except Exception as error:
        return report(error, prefix), str(error)
    return 0, ""


def _function(name: str) -> Any:
    """The function that 'module:function' names."""
    module, function = name.split(":")
    return getattr(importlib.import_module(module), function)


def _describe(config: Composed, name: str, sweep_dir: Path | None) -> Job:
    loader = GlobalHydra.instance().config_loader()
    task = list(HydraConfig.get().overrides.task)
    overrides = OverridesParser.create().parse_overrides(task)
    groups = [override for override in overrides if loader.get_group_options(override.key_or_group)]
    values = [override for override in overrides if override not in groups]
    for override in values:
        if override.is_delete():
            raise ValueError(f"'{override.input_line}' deletes a key that the command needs; give it another value.")
    base = loader.load_configuration(name, [o.input_line for o in groups if o.input_line], RunMode.RUN)
    plain = _plain(config, whole=True)
    return Job(
        config=plain,
        settings=_settings(name, plain, _plain(base, whole=False)),
        given=tuple([_key(override) for override in groups] + [override.key_or_group for override in values]),
        command=shlex.join(["python", "-m", f"nmt.{name}", *task]),
        sweep_dir=sweep_dir,
    )


def _settings(name: str, config: Config, base: Config) -> Keys:
    """The validated settings of a command; `base` is its configuration with the chosen groups and no other values.

    Raises ValueError for a key that does not exist and for a value that cannot be used.
    """
    for key, node in config.items():
        if isinstance(node, dict) and "_target_" in node and isinstance(base.get(key), dict):
            check_node(key, node, base[key])
    return validated(COMMANDS[name], config)


def _key(override: Override) -> str:
    return override.package if override.package else override.key_or_group.replace("/", ".")


def _plain(config: Composed, whole: bool) -> Config:
    """The configuration as plain dicts and lists, interpolations resolved; `whole` refuses keys without a value."""
    config = OmegaConf.masked_copy(config, [str(key) for key in config if key != "hydra"])
    return OmegaConf.to_container(config, resolve=True, throw_on_missing=whole)  # type: ignore[return-value]


def _sentence(error: Exception) -> str:
    """One sentence for an error of Hydra or OmegaConf."""
    cause = error.__cause__ if isinstance(error.__cause__, OmegaConfBaseException) else error
    if isinstance(error, MissingConfigException) and error.missing_cfg_file:
        group, _, choice = error.missing_cfg_file.rpartition("/")
        return unknown(group.replace("/", " ") or "configuration", choice, error.options or ())
    if isinstance(error, OverrideParseException):
        if "=" not in str(error.override):
            return f"Cannot read '{error.override}': write key=value, such as run_dir=PATH."
        return f"Cannot read '{error.override}': write key=value, and quote special characters, as in 'key=\"a, b\"'."
    if isinstance(cause, MissingMandatoryValue):
        return f"{cause.full_key} is missing; add {cause.full_key}=VALUE to the command."
    if isinstance(cause, InterpolationResolutionError):
        return f"The configuration cannot be resolved: {str(cause).splitlines()[0]}."
    if isinstance(cause, OmegaConfBaseException) and cause.full_key and cause.parent_node is not None:
        parent = str(cause.full_key).removesuffix(str(cause.key))
        sentence = unknown(
            "key", str(cause.full_key), [f"{parent}{key}" for key in cause.parent_node if key != "hydra"]
        )
        further = str(cause.full_key).startswith("data.test")
        return f"{sentence} A further test split is added by +{cause.full_key}=PREFIX." if further else sentence
    if str(error).startswith("Ambiguous value for argument"):
        given = str(error).splitlines()[0].split("'", 1)[1].rpartition("'")[0]
        key, _, values = given.partition("=")
        if (CONFIGS / key.split("@")[0]).is_dir():
            return f"'{given}' names several: give one of them, or -m too for a training of each."
        return f"'{given}' has commas: write a list as '{key}=[{values}]'; with -m it is a sweep over its parts."
    if "Could not override" in str(error):
        return _not_taken(str(error))
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def _not_taken(message: str) -> str:
    """The sentence for a part that nothing takes in this configuration, from Hydra's own."""
    name = message.split("'")[1]
    if "@" in name:
        return (
            f"Nothing in this configuration takes '{name}'; model=transformer takes norm@model, "
            "scorer@SITE and normalizer@SITE, where SITE is encoder_self, decoder_self or cross."
        )
    if meant := re.search(r"Did you mean to override (?:one of )?(.+?)\?", message):
        return f"Nothing in this configuration takes '{name}'. Did you mean '{meant[1]}'?"
    return f"Nothing in this configuration takes '{name}'; --help tells what it takes."
