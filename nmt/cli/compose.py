"""From arguments to a job: Hydra composes the YAML files, and the schema validates the result."""

import copy
import functools
import itertools
import math
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import hydra
import yaml
from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import ChoiceSweep, Glob, Override, RangeSweep, Sweep
from hydra.errors import ConfigCompositionException, HydraException, MissingConfigException
from omegaconf import OmegaConf
from omegaconf.errors import (
    ConfigAttributeError,
    ConfigKeyError,
    GrammarParseError,
    InterpolationResolutionError,
    MissingMandatoryValue,
    OmegaConfBaseException,
)

from nmt.cli.arguments import for_hydra
from nmt.cli.settings_class import settings_class
from nmt.config.job import Job
from nmt.config.keys import leaves, normal_form
from nmt.config.messages import missing, unknown
from nmt.config.nodes import CONFIGS, Config
from nmt.config.schema import check_node, validated
from nmt.errors import Mistake

# OmegaConf's DictConfig, whose annotations are not precise enough for strict type checks.
Composed = Any

_LARGEST = 2**63 - 1
_MOST_JOBS = 10_000
"""Maximum number of jobs in a sweep, because all of them are listed before the first one starts."""


def job_of(name: str, arguments: Sequence[str], typed: Sequence[str], sweep_dir: Path | None = None) -> Job:
    """The job that arguments in Hydra's syntax describe; `typed` are the arguments as the user typed them.

    Raises Mistake for an argument, a key or a value that cannot be used.
    """
    overrides = parsed(name, arguments)
    config = normal_form(_plain(_composed(name, overrides), whole=True))
    settings = validated(settings_class(name), config)  # before the nodes, which may contain copies of an invalid value
    if sweep_dir is None and getattr(settings, "sweep_dir", None) is not None:
        raise Mistake("sweep_dir is only for a sweep: add -m, or write run_dir= for a single run.")
    groups = [override for override in overrides if _is_group(override)]
    # Values outside the nodes can be defaults within them: trainer.max_steps is the default of schedule.steps.
    nodes = {key for key in config if isinstance(getattr(settings, key, None), dict)}
    outside = [
        override for override in overrides if override in groups or override.key_or_group.split(".")[0] not in nodes
    ]
    defaults = _plain(_composed(name, outside), whole=False)
    for key, node in config.items():
        if isinstance(node, dict) and "_target_" in node and isinstance(defaults.get(key), dict):
            check_node(key, node, defaults[key])
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
    return _plain(_composed(name, parsed(name, for_hydra(arguments, settings_class(name)))), whole=False)


def choices_and_values(name: str, overrides: Sequence[Override]) -> tuple[dict[str, str | None], Config]:
    """The choice of each group, and the configuration with unresolved interpolations."""
    composed = _composed(name, overrides)
    plain: Config = OmegaConf.to_container(composed, resolve=False)  # type: ignore[assignment]
    return _choices(composed), plain


def run_hydra(name: str, task: Callable[[Composed], object], overrides: Sequence[Override] = ()) -> None:
    """Runs Hydra's own command line on sys.argv: it calls `task` for each job of a sweep, or shows the configuration.

    Raises Mistake for anything that Hydra rejects; the sweep's `overrides` help to find the reason.
    """
    try:
        hydra.main(version_base="1.3", config_path=str(CONFIGS), config_name=name)(task)()
    except (HydraException, OmegaConfBaseException) as error:
        _composed(name, [override for override in overrides if override.is_hydra_override()])
        arguments = [
            [f"{override.get_key_element()}={value}" for value in _values_of(override)]
            if override.is_discrete_sweep()
            else [str(override.input_line)]
            for override in overrides
            if not override.is_hydra_override() and (override.is_discrete_sweep() or not override.is_sweep_override())
        ]
        for combination in itertools.product(*arguments):  # the first invalid job raises its own error
            _composed(name, parsed(name, combination))
        raise Mistake(_sentence(error)) from error


def parsed(name: str, arguments: Sequence[str], sweep: bool = False) -> list[Override]:
    """The arguments as Hydra parses them; only a `sweep` may give a key several values.

    Raises Mistake for an argument that cannot be parsed, or that no configuration of the command accepts.
    """
    parser, overrides = OverridesParser.create(), []
    for argument in arguments:
        try:
            override = parser.parse_override(argument)
        except HydraException as error:
            raise Mistake(_unreadable(name, argument, parser)) from error
        except ValueError as error:  # from int()
            raise Mistake(
                f"{argument.partition('=')[0]} has a number of more than {sys.get_int_max_str_digits()} digits. Write "
                "a smaller one."
            ) from error
        overrides.append(override)
        _check(name, override, sweep)
    # Sweepers other than Hydra's own, such as Optuna's, choose values from an interval.
    if has_hydras_sweeper(overrides):
        for override in overrides:
            if override.is_interval_sweep():
                raise Mistake(
                    f"'{override.input_line}' names no single values. Write those to try, as in "
                    f"{override.get_key_element()}=A,B,C."
                )
        jobs = math.prod(_number_of_values(override) for override in overrides)
        if jobs > _MOST_JOBS:
            several = " ".join(str(override.input_line) for override in overrides if override.is_sweep_override())
            raise Mistake(
                f"'{several}' makes more than {_MOST_JOBS:,} jobs, the most that a sweep may have. Write fewer values."
            )
    return overrides


def has_hydras_sweeper(overrides: Iterable[Override]) -> bool:
    """Whether a sweep runs a job for each combination of values, as Hydra's own sweeper does."""
    return not any(override.key_or_group in ("hydra/sweeper", "hydra.sweeper._target_") for override in overrides)


def jobs_of_sweep(overrides: Iterable[Override]) -> list[list[str]]:
    """The overrides of each job of Hydra's own sweeper, in the order of the jobs' numbers."""
    settings = [override for override in overrides if not override.is_hydra_override()]
    return [
        list(job)
        for job in itertools.product(
            *(
                [f"{override.get_key_element()}={value}" for value in _values_of(override)]
                if override.is_discrete_sweep()
                else [str(override.input_line)]
                for override in settings
            )
        )
    ]


def _number_of_values(override: Override) -> float:
    """How many values a sweep gives to a key, without listing them: range(0,99999999999) would fill the memory."""
    value = override.value()
    if isinstance(value, RangeSweep):
        start, stop = value.start or 0, value.stop or 0  # _check has seen that they are numbers
        return max(1.0, (stop - start) / value.step)
    return float(len(_values_of(override)) if override.is_discrete_sweep() else 1)


def _unreadable(name: str, argument: str, parser: OverridesParser) -> str:
    """The error for an argument that Hydra cannot read: its key if that is at fault, otherwise its value."""
    key, equals, _ = argument.partition("=")
    try:
        override = parser.parse_override(f"{key}=null")
    except HydraException:
        equals = ""
    if not equals and name == "translate" and Path(argument).is_file():
        return f"'{argument}' is a file, but nmt.translate reads standard input. Write < {shlex.quote(argument)}."
    if not equals:
        return f"Cannot read '{argument}'. Write key=value."
    if not _is_group(override):
        try:
            _check(name, override, sweep=False)
            _composed(name, [override])
        except Mistake as error:
            return str(error)
    return f"Cannot read '{argument}'. Quote the value, as in 'key=\"a, b\"'."


def _check(name: str, override: Override, sweep: bool) -> None:
    argument, key = override.input_line, override.get_key_element().lstrip("+~")
    if not key:
        raise Mistake(f"'{argument}' has no key. Write key=value.")
    if override.is_delete():
        raise Mistake(f"'{argument}' removes a key that the command needs. Set {key} to another value instead.")
    if override.is_hydra_override() or override.key_or_group == "hydra":
        _check_hydra_setting(name, override)
        return
    if name == "translate" and key in ("source", "out"):
        raise Mistake(
            f"nmt.translate has no key {key}: write < in.en > out.vi for one file, or input=FILES output=FOLDER for "
            "many."
        )
    typed = override.value()
    values = typed.list if isinstance(typed, ChoiceSweep) else [] if isinstance(typed, Sweep) else [typed]
    if any(map(_has_sweep, values)):
        raise Mistake(f"'{argument}' has a sweep within a value. Write all values as {key}=A,B,C.")
    if override.is_sweep_override() and not sweep:
        raise Mistake(f"'{argument}' has several values. Choose one, or add -m to run a job for each.")
    if isinstance(typed, RangeSweep) and _is_empty(typed):
        raise Mistake(f"'{argument}' has no values. Write those to try, as in {key}=A,B,C.")
    # model.norm=scale_norm, where norm@model=scale_norm is meant.
    parent, _, group = key.rpartition(".")
    if parent and "." not in parent and str(override.value()) in _choices_of(group):
        raise Mistake(f"'{argument}' chooses a part of {parent}. Write {group}@{parent}={override.value()}.")
    if _is_group(override):
        _check_choice(name, override, key)
    elif override.package:
        if "." in override.key_or_group or override.key_or_group in _compose_files(name, ()):
            raise Mistake(
                f"'{argument}' has an @, which only a choice takes, as in scorer@cross=dot. Write "
                f"{override.key_or_group}={override.get_value_string()}."
            )
        groups = [path.name for path in CONFIGS.iterdir() if path.is_dir()]
        raise Mistake(unknown("group", override.key_or_group, groups))
    elif isinstance(typed, Glob):
        raise Mistake(f"'{argument}' has a glob, which finds only the names of choices. Write {key}=A,B,C.")
    elif any(abs(number) > _LARGEST for number in _whole_numbers(override.value())):
        raise Mistake(f"{key} is {override.get_value_string()}; it must be at most {_LARGEST}.")


def _check_hydra_setting(name: str, override: Override) -> None:
    """Raises Mistake for a setting of Hydra that it would refuse in words without a remedy, or not refuse at all."""
    argument, key, value = override.input_line, override.key_or_group, override.value()
    usual: Config = OmegaConf.to_container(_compose_files(name, ()), resolve=False)  # type: ignore[assignment]
    groups = {group: choice for group, choice in usual["hydra"]["runtime"]["choices"].items() if "hydra/" in group}
    if key == "hydra" or (not isinstance(value, dict) and isinstance(_part(usual, key), dict)):
        raise Mistake(f"'{argument}' replaces several of Hydra's settings. Set a single one; --cfg hydra lists them.")
    if override.is_sweep_override():
        raise Mistake(
            f"'{argument}' has several values, but a sweep has one value of each of Hydra's settings. Choose one."
        )
    if override.package:
        raise Mistake(
            f"'{argument}' has an @, which no setting of Hydra takes. Write {key}={override.get_value_string()}."
        )
    if "/" not in key:
        return
    if key not in groups:
        raise Mistake(unknown("group", key, groups))
    if override.is_add() or override.is_force_add():
        raise Mistake(f"'{argument}' adds a choice. To replace the current one, write {key}=CHOICE without +.")
    if not isinstance(value, (str, list)):  # hydra/callbacks=[A,B] adds both
        raise Mistake(f"'{argument}' is not a choice. Write {key}=NAME, as in hydra/launcher=basic.")


def _part(config: Config, key: str) -> Any:
    """The value of a dotted key; None if the key is missing."""
    value: Any = config
    for name in key.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _is_empty(values: RangeSweep) -> bool:
    """Whether a range has no values, or no end."""
    start, stop, step = values.start, values.stop, values.step
    if start is None or stop is None or not (start < stop if step > 0 else start > stop and step < 0):
        return True
    return math.inf in (abs(start), abs(stop))


def _values_of(sweep: Override) -> list[str]:
    """The values of a sweep that has single values, as text."""
    value = sweep.value()
    return (
        value.filter(_choices_of(sweep.key_or_group)) if isinstance(value, Glob) else [*sweep.sweep_string_iterator()]
    )


def _chosen_key(choice: Override, config: Config) -> str:
    """The key that a choice sets as a whole: for norm@model 'model.norm', for scorer@encoder_self the site."""
    package: str | None = choice.package
    if package is None:
        return str(choice.key_or_group)
    return f"{package}.{choice.key_or_group}" if "_target_" in (config.get(package) or {}) else package


def _is_group(override: Override) -> bool:
    """Whether an override chooses one of several files, such as scorer=dot."""
    return (CONFIGS / override.key_or_group).is_dir()


def _check_choice(name: str, override: Override, key: str) -> None:
    group, value = override.key_or_group, override.value()
    if override.is_add() or override.is_force_add():
        raise Mistake(
            f"'{override.input_line}' adds a choice. To replace the current one, write {key}=CHOICE without +."
        )
    if isinstance(value, dict):  # not a choice, but settings of the current one
        return
    if isinstance(value, list):
        raise Mistake(
            f"'{override.input_line}' has several choices. Choose one, or use -m {key}=A,B to run a job for each."
        )
    choices = _choices_of(group)
    if override.is_interval_sweep():
        return
    if isinstance(value, RangeSweep):
        raise Mistake(
            f"'{override.input_line}' has numbers, but {group} takes names. Available: {', '.join(sorted(choices))}."
        )
    chosen = _values_of(override) if override.is_sweep_override() else [override.get_value_element_as_str()]
    if not chosen:
        raise Mistake(f"'{override.input_line}' matches no {group}. Available: {', '.join(sorted(choices))}.")
    for choice in chosen:
        if choice not in choices:
            remedy = _with_site(override, _choices(_compose_files(name, ())), "CHOICE")
            if group == "data":
                files = f"'data.train=[{choice}]' data.valid=PREFIX data.test=PREFIX"
                remedy = f"For files of your own, write data=files {files}."
            raise Mistake(f"{unknown(group, choice, choices)} {remedy}".rstrip())


def _choices_of(group: str) -> list[str]:
    """The choices of a group; none if there is no such group."""
    return [file.stem for file in (CONFIGS / group).glob("*.yaml")]


def _has_sweep(value: Any) -> bool:
    """Whether a value is a sweep, or a list or a dict with one in it."""
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return isinstance(value, Sweep) or any(_has_sweep(part) for part in parts)


def _whole_numbers(value: Any) -> Iterator[int]:
    if isinstance(value, int):
        yield value
    if isinstance(value, RangeSweep):
        value = [value.start, value.stop, value.step]
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for part in parts:
        yield from _whole_numbers(part)


def _composed(name: str, overrides: Sequence[Override]) -> Composed:
    """The configuration as Hydra composes it, with its own settings under 'hydra'.

    Raises Mistake for a key that does not exist and for choices that exclude each other.
    """
    try:
        # Composing the files takes most of the time, and plain values do not change which files are composed.
        files = [override for override in overrides if _chooses_files(override)]
        # A copy, because the next call may get the same object from the cache.
        composed = copy.deepcopy(_compose_files(name, tuple(str(override.input_line) for override in files)))
        for override in overrides:
            if override not in files:
                _set_value(composed, override)
    except HydraException as error:
        raise Mistake(
            _setting_of_hydra_at_fault(name, overrides) or _missing_group(name, overrides, error) or _sentence(error)
        ) from error
    return composed


def _chooses_files(override: Override) -> bool:
    """Whether an override chooses a file, or changes one of Hydra's own settings."""
    return override.is_hydra_override() or (_is_group(override) and not isinstance(override.value(), dict))


@functools.lru_cache(maxsize=64)  # about 0.6 MB each
def _compose_files(name: str, overrides: tuple[str, ...]) -> Composed:
    # In a sweep, Hydra is running already and would refuse to start again.
    global_hydra = GlobalHydra.instance()
    running, global_hydra.hydra = global_hydra.hydra, None
    try:
        with initialize_config_dir(str(CONFIGS), version_base="1.3"):
            return compose(name, list(overrides), return_hydra_config=True)
    finally:
        global_hydra.hydra = running


def _set_value(composed: Composed, override: Override) -> None:
    """Sets a value as Hydra does. Raises Mistake for a key inside a list, and if + adds a key that exists."""
    key, value, adds = override.key_or_group, override.value(), override.is_add()
    try:
        exists = adds and not isinstance(value, (dict, list)) and OmegaConf.select(composed, key) is not None
        if not exists:
            OmegaConf.update(composed, key, value, merge=True, force_add=adds or override.is_force_add())
    # OmegaConf raises Python's built-in errors if a part of the key is inside a list.
    except (OmegaConfBaseException, ValueError, TypeError) as error:
        if list_key := _list_around(composed, key):
            raise Mistake(f"{list_key} is a list. Set the whole list, as in '{list_key}=[A,B]'.") from error
        raise ConfigCompositionException(
            f"'{override.input_line}' does not fit the configuration. Run the command with --help to see the form of "
            "every value."
        ) from error
    if exists:
        raise Mistake(f"'{override.input_line}' adds a key that already exists. Write it without +.")


def _list_around(composed: Composed, key: str) -> str:
    """The key of the list that a dotted key leads into, or '' if it leads into no list."""
    names = key.split(".")
    for number in range(1, len(names)):
        node = OmegaConf.select(composed, parent := ".".join(names[:number]))
        if not OmegaConf.is_dict(node):
            return parent if OmegaConf.is_list(node) else ""
    return ""


def _plain(composed: Composed, whole: bool) -> Config:
    """The configuration as plain dicts and lists, with interpolations resolved.

    Raises Mistake for an interpolation that cannot be resolved and, if `whole` is true, for keys without a value.
    """
    hydra_config = HydraConfig.instance()
    former, hydra_config.cfg = hydra_config.cfg, composed  # for interpolations such as ${hydra:runtime.choices.model}
    try:
        config = OmegaConf.masked_copy(composed, [str(key) for key in composed if key != "hydra"])
        return OmegaConf.to_container(config, resolve=True, throw_on_missing=whole)  # type: ignore[return-value]
    except MissingMandatoryValue as error:
        values = leaves(OmegaConf.to_container(config, resolve=False))
        raise Mistake(missing(key for key, value in values.items() if value == "???")) from error
    except OmegaConfBaseException as error:
        raise Mistake(_sentence(error)) from error
    finally:
        hydra_config.cfg = former


def _choices(composed: Composed) -> dict[str, str | None]:
    """The choice of each group except Hydra's own."""
    return {group: name for group, name in composed.hydra.runtime.choices.items() if not group.startswith("hydra/")}


def _setting_of_hydra_at_fault(name: str, overrides: Sequence[Override]) -> str:
    """The error for the first of Hydra's own settings whose value it refuses; '' if that is not what it refused."""
    accepted = list[str]()
    settings = [override for override in overrides if override.is_hydra_override()]
    for override in sorted(settings, key=lambda override: "/" not in override.key_or_group):  # choices bring settings
        try:
            _compose_files(name, (*accepted, str(override.input_line)))
        except MissingConfigException:
            return ""
        except HydraException as error:
            if isinstance(error.__cause__, (ConfigAttributeError, ConfigKeyError)):  # an unknown key
                return ""
            reason, _, _ = str(error.__cause__ or error).partition("\n")
            return (
                f"'{override.input_line}' does not fit Hydra's settings: {reason.rstrip('.:')}. Add --cfg hydra to see "
                "them."
            )
        accepted.append(str(override.input_line))
    return ""


def _missing_group(name: str, overrides: Sequence[Override], error: HydraException) -> str:
    """The error for a group that does not exist, or that another choice does not have; '' for any other error."""
    if type(error) is not ConfigCompositionException or error.__cause__ is not None:
        return ""
    # Adds the choices one by one, to find the one at fault: first those that may add sites, last those at a site.
    usual, accepted = _choices(_compose_files(name, ())), list[str]()

    def order(override: Override) -> tuple[bool, bool]:
        return override.package is not None, override.get_key_element() not in usual

    for override in sorted(filter(_chooses_files, overrides), key=order):
        try:
            _compose_files(name, (*accepted, str(override.input_line)))
            accepted.append(str(override.input_line))
        except HydraException:
            groups = _choices(_compose_files(name, tuple(accepted)))
            if _is_group(override) and override.get_key_element() not in groups:
                return _absent_group(override, groups)
    # Hydra names the group and lists similar ones. Its last line advises to add the group with +, which we refuse.
    lines = [line for line in str(error).split("\n") if not line.startswith("To append")]
    return f"{' '.join(lines)} Run the command with the other choices and --help to see the groups that they have."


def _absent_group(override: Override, groups: Mapping[str, str | None]) -> str:
    """The error for a choice in a group that is not among `groups`, which maps groups to their choices."""
    argument, key = str(override.input_line), override.get_key_element()
    if remedy := _with_site(override, groups, str(override.value())):
        return f"'{argument}' does not say where to use it. {remedy}"
    available = [group for group in groups if group.partition("@")[0] == override.key_or_group]
    for parent, choices in _parents().get(key, {}).items():
        if parent in groups:
            others = " or ".join(f"{parent}={choice}" for choice in choices)
            sentence = f"{parent}={groups[parent]} has no {key}. Leave out '{argument}', or choose {others}."
            return f"{sentence} Available: {', '.join(sorted(available))}." if available else sentence
    return unknown("group", key, available or groups)


def _with_site(override: Override, groups: Mapping[str, str | None], choice: str) -> str:
    """The remedy for a choice that lacks its site, such as norm=scale_norm; '' if it has one or needs none."""
    if override.get_key_element() in groups or override.package:
        return ""
    group = override.key_or_group
    remedies = [f"{key}={choice}" for key in groups if key.startswith(f"{group}@")]
    for key, parents in _parents().items():
        if key.startswith(f"{group}@") and key not in groups:
            chosen = [f"{parent}={name}" for parent, names in parents.items() if parent in groups for name in names]
            remedies += [f"{key}={choice} with {' or '.join(chosen)}"] if chosen else []
    return f"Write {' or '.join(remedies)}." if remedies else ""


@functools.cache
def _parents() -> dict[str, dict[str, list[str]]]:
    """The choices that add a group such as 'norm@model', by the group in which they are chosen."""
    parents: dict[str, dict[str, list[str]]] = {}
    for file in sorted(CONFIGS.glob("*/*.yaml")):
        parent, defaults = file.parent.name, (yaml.safe_load(file.read_text(encoding="utf-8")) or {}).get("defaults")
        for added in (name for entry in defaults or () if isinstance(entry, dict) for name in entry):
            if added.startswith("/"):
                group = added[1:].replace("_here_", parent).replace("_global_.", "")
                parents.setdefault(group, {}).setdefault(parent, []).append(file.stem)
    return parents


def _sentence(error: Exception) -> str:
    """The message, in one sentence, for an error that Hydra or OmegaConf raised."""
    cause = error.__cause__ if isinstance(error.__cause__, OmegaConfBaseException) else error
    if isinstance(error, MissingConfigException) and error.missing_cfg_file:
        group, _, choice = error.missing_cfg_file.rpartition("/")
        return unknown(group or "configuration", choice, error.options or ())
    if isinstance(cause, (InterpolationResolutionError, GrammarParseError)):
        reason, _, _ = str(cause).partition("\n")
        return (
            f"{cause.full_key} cannot be resolved: {reason.removesuffix('.')}. Write the value itself, or name a key "
            "of this command."
        )
    if isinstance(cause, (ConfigAttributeError, ConfigKeyError)) and cause.parent_node is not None:
        key, parent = str(cause.full_key), str(cause.full_key).removesuffix(str(cause.key))
        sentence = unknown("key", key, [f"{parent}{name}" for name in cause.parent_node if name != "hydra"])
        return f"{sentence} To add a test split, write +{key}=PREFIX." if parent == "data." else sentence
    return (str(error).strip() or str(cause)).partition("\n")[0]
