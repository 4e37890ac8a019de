"""The configuration as Hydra composes it from the YAML files of configs/, and the errors for what it refuses."""

import functools
import pickle
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.types import Override
from hydra.errors import ConfigCompositionException, HydraException, MissingConfigException
from omegaconf import OmegaConf, flag_override
from omegaconf.errors import (
    ConfigAttributeError,
    ConfigKeyError,
    GrammarParseError,
    InterpolationResolutionError,
    MissingMandatoryValue,
    OmegaConfBaseException,
)

from nmt.config.keys import leaves
from nmt.config.messages import missing, unknown
from nmt.config.nodes import CONFIGS, Config, read_yaml
from nmt.errors import Mistake

_FAMILIAR = {"steps": "trainer.max_steps", "epochs": "trainer.max_epochs", "batch_size": "batching.batch_tokens"}
"""Keys that people know from other programs, and those that they mean."""
_ABSENT = object()

# OmegaConf's DictConfig, whose annotations are not precise enough for strict type checks.
Composed = Any


def composed_config(name: str, overrides: Sequence[Override]) -> Composed:
    """The configuration as Hydra composes it, with its own settings under 'hydra'.

    Raises Mistake for a key that does not exist and for choices that exclude each other.
    """
    try:
        # Composing the files takes most of the time, and plain values do not change which files are composed.
        files = [override for override in overrides if _chooses_files(override)]
        composed = composed_files(name, tuple(str(override.input_line) for override in files))
        for override in overrides:
            if override not in files:
                _set_value(composed, override)
    except HydraException as error:
        raise Mistake(
            _setting_of_hydra_at_fault(name, overrides) or _missing_group(name, overrides, error) or one_sentence(error)
        ) from error
    return composed


def composed_files(name: str, overrides: tuple[str, ...]) -> Composed:
    """A configuration of its own for each call, because callers set values in it."""
    return pickle.loads(_pickled_files(name, overrides))


# Reading a pickle takes 2 ms, copying OmegaConf's nodes one by one 15.
@functools.lru_cache(maxsize=64)
def _pickled_files(name: str, overrides: tuple[str, ...]) -> bytes:
    # In a sweep, Hydra is running already and would refuse to start again.
    global_hydra = GlobalHydra.instance()
    running, global_hydra.hydra = global_hydra.hydra, None
    try:
        with initialize_config_dir(str(CONFIGS), version_base="1.3"):
            return pickle.dumps(compose(name, list(overrides), return_hydra_config=True))
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
        if key in _FAMILIAR and OmegaConf.select(composed, _FAMILIAR[key], default=_ABSENT) is not _ABSENT:
            raise Mistake(f"Unknown key '{key}'. Did you mean '{_FAMILIAR[key]}'?") from error
        if longer := _keys_that_end_in(composed, key):
            raise Mistake(f"Unknown key '{key}'. Did you mean {' or '.join(map(repr, longer))}?") from error
        raise ConfigCompositionException(
            f"'{override.input_line}' does not fit the configuration. Run the command with --help to see the form of "
            "every value."
        ) from error
    if exists:
        raise Mistake(f"'{override.input_line}' adds a key that already exists. Write it without +.")


def _keys_that_end_in(composed: Composed, name: str) -> list[str]:
    """The full keys of a name that is given without its group, as lr for optimizer.lr; none if it is a full key."""
    if "." in name or name in composed:
        return []
    keys = leaves(OmegaConf.to_container(composed, resolve=False))
    return [key for key in keys if key.endswith(f".{name}") and not key.startswith("hydra.")]


def _list_around(composed: Composed, key: str) -> str:
    """The key of the list that a dotted key leads into, or '' if it leads into no list."""
    names = key.split(".")
    for number in range(1, len(names)):
        node = OmegaConf.select(composed, parent := ".".join(names[:number]))
        if not OmegaConf.is_dict(node):
            return parent if OmegaConf.is_list(node) else ""
    return ""


def plain_config(composed: Composed, whole: bool) -> Config:
    """The configuration as plain dicts and lists, with interpolations resolved.

    Raises Mistake for an interpolation that cannot be resolved and, if `whole` is true, for keys without a value.
    """
    hydra_config = HydraConfig.instance()
    former, hydra_config.cfg = hydra_config.cfg, composed  # for interpolations such as ${hydra:runtime.choices.model}
    config: Config = {}
    try:
        for key in (str(name) for name in composed if name != "hydra"):
            if not whole and OmegaConf.is_missing(composed, key):
                config[key] = "???"
            elif OmegaConf.is_config(value := composed[key]):
                config[key] = OmegaConf.to_container(value, resolve=True, throw_on_missing=whole)
            else:
                config[key] = value
        return config
    except MissingMandatoryValue as error:
        values = leaves(OmegaConf.to_container(composed, resolve=False))
        keys = [key for key, value in values.items() if value == "???" and not key.startswith("hydra.")]
        # '???' in a list makes the whole list lack a value.
        raise missing(keys or [re.sub(r"(\[\d+\])+$", "", str(error.full_key))]) from error
    except OmegaConfBaseException as error:
        raise Mistake(one_sentence(error)) from error
    finally:
        hydra_config.cfg = former


def sweep_folder(composed: Composed, job: int) -> Path:
    """The folder that Hydra gives to a job of a sweep, which has this number and this configuration."""
    hydra_config = HydraConfig.instance()
    former, hydra_config.cfg = hydra_config.cfg, composed
    try:
        with flag_override(composed, ["readonly", "struct"], [False, False]):
            composed.hydra.job.num = job
        return Path(str(composed.hydra.sweep.dir), str(composed.hydra.sweep.subdir))
    except OmegaConfBaseException as error:
        raise Mistake(one_sentence(error)) from error
    finally:
        hydra_config.cfg = former


def choices_in(composed: Composed) -> dict[str, str | None]:
    """The choice of each group except Hydra's own."""
    return {group: name for group, name in composed.hydra.runtime.choices.items() if not group.startswith("hydra/")}


def choices_of(group: str) -> list[str]:
    """The choices of a group; none if there is no such group."""
    return [file.stem for file in (CONFIGS / group).glob("*.yaml")]


def is_group(override: Override) -> bool:
    """Whether an override chooses one of several files, such as scorer=dot."""
    return (CONFIGS / override.key_or_group).is_dir()


def _chooses_files(override: Override) -> bool:
    """Whether an override chooses a file, or changes one of Hydra's own settings."""
    return override.is_hydra_override() or (is_group(override) and not isinstance(override.value(), dict))


def _setting_of_hydra_at_fault(name: str, overrides: Sequence[Override]) -> str:
    """The error for the first of Hydra's own settings whose value it refuses; '' if that is not what it refused."""
    accepted = list[str]()
    settings = [override for override in overrides if override.is_hydra_override()]
    for override in sorted(settings, key=lambda override: "/" not in override.key_or_group):  # choices bring settings
        try:
            composed_files(name, (*accepted, str(override.input_line)))
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
    # Adds the choices one by one to find the one at fault: first choices that may add sites, last choices at a site.
    usual, accepted = choices_in(composed_files(name, ())), list[str]()

    def order(override: Override) -> tuple[bool, bool]:
        return override.package is not None, override.get_key_element() not in usual

    for override in sorted(filter(_chooses_files, overrides), key=order):
        try:
            composed_files(name, (*accepted, str(override.input_line)))
            accepted.append(str(override.input_line))
        except HydraException:
            groups = choices_in(composed_files(name, tuple(accepted)))
            if is_group(override) and override.get_key_element() not in groups:
                return _absent_group(override, groups)
    # Hydra names the group and lists similar ones. Its last line advises to add the group with +, which we refuse.
    lines = [line for line in str(error).split("\n") if not line.startswith("To append")]
    return f"{' '.join(lines)} Run the command with the other choices and --help to see the groups that they have."


def _absent_group(override: Override, groups: Mapping[str, str | None]) -> str:
    """The error for a choice in a group that is not among `groups`, which maps groups to their choices."""
    argument, key = str(override.input_line), override.get_key_element()
    if remedy := with_site(override, groups, str(override.value())):
        return f"'{argument}' does not say where to use it. {remedy}"
    available = [group for group in groups if group.partition("@")[0] == override.key_or_group]
    for parent, choices in _parents().get(key, {}).items():
        if parent in groups:
            others = " or ".join(f"{parent}={choice}" for choice in choices)
            remedy = f"Leave out '{argument}'"
            if key.endswith("@cross") and override.key_or_group in available:
                # In such a model, the group without a site is that of the cross attention.
                remedy = f"For its cross attention, write '{argument.replace('@cross', '', 1)}'"
            sentence = f"{parent}={groups[parent]} has no {key}. {remedy}, or choose {others}."
            return f"{sentence} Available: {', '.join(sorted(available))}." if available else sentence
    return unknown("group", key, available or groups)


def groups_of(name: str, choices: str) -> list[str]:
    """The groups that some configuration has and that take these choices, such as scorer and scorer@cross."""
    groups = {**choices_in(composed_files(name, ())), **_parents()}
    return [group for group in groups if group.partition("@")[0] == choices]


def with_site(override: Override, groups: Mapping[str, str | None], choice: str) -> str:
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
        parent, defaults = file.parent.name, (read_yaml(file) or {}).get("defaults")
        for added in (name for entry in defaults or () if isinstance(entry, dict) for name in entry):
            if added.startswith("/"):
                group = added[1:].replace("_here_", parent).replace("_global_.", "")
                parents.setdefault(group, {}).setdefault(parent, []).append(file.stem)
    return parents


def one_sentence(error: Exception) -> str:
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
