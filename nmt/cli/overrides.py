"""Arguments as Hydra parses them, and the errors for those that no configuration of a command accepts."""

import itertools
import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import ChoiceSweep, Glob, Override, RangeSweep, Sweep
from hydra.errors import HydraException
from omegaconf import OmegaConf

from nmt.cli.configs import choices_in, choices_of, composed_config, composed_files, groups_of, is_group, with_site
from nmt.cli.settings_class import settings_class
from nmt.config.keys import value_at
from nmt.config.messages import unknown
from nmt.config.nodes import CONFIGS, Config
from nmt.errors import Mistake

_LARGEST = 2**63 - 1
_MOST_JOBS = 10_000
"""Maximum number of jobs in a sweep, because all of them are listed before the first one starts."""


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


def jobs_of_sweep(overrides: Iterable[Override]) -> Iterator[tuple[str, ...]]:
    """The overrides of each job of Hydra's own sweeper, in the order of the jobs' numbers.

    Intervals, which only other sweepers know, are left out.
    """
    return itertools.product(
        *(
            [f"{override.get_key_element()}={value}" for value in values_of(override)]
            if override.is_discrete_sweep()
            else [_as_hydra_writes(override)]
            for override in overrides
            if not override.is_hydra_override() and (override.is_discrete_sweep() or not override.is_sweep_override())
        )
    )


def _as_hydra_writes(override: Override) -> str:
    """A setting as the job of a sweep gets it, which may differ from how it was typed: True for true."""
    if override.value_type is None:  # deletes a key, and has no value
        return str(override.input_line)
    return f"{override.get_key_element()}={override.get_value_element_as_str()}"


def _number_of_values(override: Override) -> float:
    """How many values a sweep gives to a key, without listing them: range(0,99999999999) would fill the memory."""
    value = override.value()
    if isinstance(value, RangeSweep):
        start, stop = value.start or 0, value.stop or 0  # _check has seen that they are numbers
        return max(1.0, (stop - start) / value.step)
    return float(len(values_of(override)) if override.is_discrete_sweep() else 1)


def _unreadable(name: str, argument: str, parser: OverridesParser) -> str:
    """The error for an argument that Hydra cannot read: its key if that is at fault, otherwise its value."""
    key, equals, _ = argument.partition("=")
    try:
        override = parser.parse_override(f"{key}=null")
    except HydraException:
        equals = ""
    if not equals:
        return settings_class(name).not_a_setting(argument)
    if not is_group(override):
        try:
            _check(name, override, sweep=False)
            composed_config(name, [override])
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
    if remedy := settings_class(name).NOT_KEYS.get(key):
        raise Mistake(f"nmt.{name} has no key {key}: {remedy}.")
    typed = override.value()
    values = typed.list if isinstance(typed, ChoiceSweep) else [] if isinstance(typed, Sweep) else [typed]
    if any(map(_has_sweep, values)):
        raise Mistake(f"'{argument}' has a sweep within a value. Write all values as {key}=A,B,C.")
    if override.is_sweep_override() and not sweep:
        raise Mistake(f"'{argument}' has several values. Choose one, or add -m to run a job for each.")
    if isinstance(typed, RangeSweep) and _is_empty_range(typed):
        raise Mistake(f"'{argument}' has no values. Write those to try, as in {key}=A,B,C.")
    # model.norm=scale_norm, where norm@model=scale_norm is meant.
    parent, _, group = key.rpartition(".")
    value = str(typed)
    if parent and "." not in parent and value in choices_of(group) and (groups := groups_of(name, group)):
        if f"{group}@{parent}" in groups:
            remedy = f"{group}@{parent}={value}"
        elif group in groups:
            remedy = f"{group}={value}" + (f", or {group}@SITE={value} for one site" if len(groups) > 1 else "")
        else:
            remedy = " or ".join(f"{other}={value}" for other in groups)
        mistake = f"chooses a part of {parent}" if f"{group}@{parent}" in groups else "is a choice in the wrong place"
        raise Mistake(f"'{argument}' {mistake}. Write {remedy}.")
    if is_group(override):
        _check_choice(name, override, key)
    elif override.package:
        if "." in override.key_or_group or override.key_or_group in composed_files(name, ()):
            raise Mistake(
                f"'{argument}' has an @, which only a choice takes, as in scorer@cross=dot. Write "
                f"{override.key_or_group}={override.get_value_string()}."
            )
        groups = [path.name for path in CONFIGS.iterdir() if path.is_dir()]
        raise Mistake(unknown("group", override.key_or_group, groups))
    elif isinstance(typed, Glob):
        raise Mistake(f"'{argument}' has a glob, which finds only the names of choices. Write {key}=A,B,C.")
    elif any(abs(number) > _LARGEST for number in _whole_numbers(override.value())):
        raise Mistake(f"{key} is {override.get_value_string()}; it must be between -{_LARGEST} and {_LARGEST}.")


def _check_hydra_setting(name: str, override: Override) -> None:
    """Raises Mistake for a setting of Hydra that it would refuse in words without a remedy, or not refuse at all."""
    argument, key, value = override.input_line, override.key_or_group, override.value()
    usual: Config = OmegaConf.to_container(composed_files(name, ()), resolve=False)  # type: ignore[assignment]
    groups = {group: choice for group, choice in usual["hydra"]["runtime"]["choices"].items() if "hydra/" in group}
    if key == "hydra" or (not isinstance(value, dict) and isinstance(value_at(usual, key), dict)):
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


def _is_empty_range(values: RangeSweep) -> bool:
    """Whether a range has no values, or no end."""
    start, stop, step = values.start, values.stop, values.step
    if start is None or stop is None or not (start < stop if step > 0 else start > stop and step < 0):
        return True
    return math.inf in (abs(start), abs(stop))


def values_of(sweep: Override) -> list[str]:
    """The values of a sweep that has single values, as text."""
    value = sweep.value()
    return value.filter(choices_of(sweep.key_or_group)) if isinstance(value, Glob) else [*sweep.sweep_string_iterator()]


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
    choices = choices_of(group)
    if override.is_interval_sweep():
        return
    if isinstance(value, RangeSweep):
        raise Mistake(
            f"'{override.input_line}' has numbers, but {group} takes names. Available: {', '.join(sorted(choices))}."
        )
    chosen = values_of(override) if override.is_sweep_override() else [override.get_value_element_as_str()]
    if not chosen:
        raise Mistake(f"'{override.input_line}' matches no {group}. Available: {', '.join(sorted(choices))}.")
    for choice in chosen:
        if choice not in choices:
            remedy = with_site(override, choices_in(composed_files(name, ())), "CHOICE")
            if group == "data":
                files = f"'data.train=[{choice}]' data.valid=PREFIX data.test=PREFIX"
                remedy = f"For files of your own, write data=files {files}."
            raise Mistake(f"{unknown(group, choice, choices)} {remedy}".rstrip())


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
