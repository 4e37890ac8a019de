"""The settings that differ between configurations, for the first columns of a comparison."""

import math
import re
from collections.abc import Mapping, Sequence
from functools import cache

from nmt.config.keys import leaves
from nmt.config.messages import written
from nmt.config.nodes import CONFIGS, Config, choice_names, read_choice

# These keys, or all keys below them, do not affect the result of a run.
_NOT_COMPARED = (
    *("run_dir", "resume", "overwrite", "cache_dir", "logger", "callbacks", "checkpoints"),
    *("trainer.log_every_n_steps", "validation.probes"),
)


def differences(configs: Sequence[Config]) -> dict[str, list[str]]:
    """The keys whose values differ between the configurations that have them, with the value printed for each.

    An object is printed as the name of its YAML file, such as `dot`. A key that the sites of a model inherit from the
    whole configuration, such as the scorer, appears once, and what follows from another difference not at all: the
    keys that a choice sets itself, such as the layers of model=luong, and those that are computed, such as
    schedule.steps from trainer.max_steps.
    """
    names = choice_names()
    printed = [
        {
            key: names.get(value, value.rpartition(".")[2]) if key.endswith("_target_") else written(value)
            for key, value in leaves(config).items()
            if not any(f"{key}.".startswith(f"{left_out}.") for left_out in _NOT_COMPARED)
        }
        for config in configs
    ]
    keys = dict.fromkeys(key for values in printed for key in values)
    differ = [key for key in keys if len({_number(values[key]) for values in printed if key in values}) > 1]
    columns = {key: [values.get(key, "") for values in printed] for key in differ}
    repeated = {
        key for key in columns for other in columns if key.endswith(f".{other}") and columns[key] == columns[other]
    }
    shown = {key: values for key, values in columns.items() if key not in repeated}
    following = {
        key
        for key in shown
        if _set_by_a_choice(key, shown) or any(shown.get(source) == shown[key] for source in _sources().get(key, ()))
    }
    return {key.removesuffix("._target_"): values for key, values in shown.items() if key not in following}


def _set_by_a_choice(key: str, columns: Mapping[str, Sequence[str]]) -> bool:
    """Whether the choices of a key's group differ, and each run has the value that its own choice sets."""
    group, _, part = key.partition(".")
    choice = next((name for name in (f"{group}._target_", f"{group}.name") if name in columns), key)
    if choice == key:
        return False
    defaults = [_settings_of_choice(group, chosen) for chosen in columns[choice]]
    return all(
        value in ("", written_default.get(part)) for value, written_default in zip(columns[key], defaults, strict=True)
    )


@cache
def _settings_of_choice(group: str, choice: str) -> dict[str, str]:
    """The keys in the file of a choice, with the value printed for each; empty if there is no such file."""
    if not (CONFIGS / group / f"{choice}.yaml").is_file():
        return {}
    node, _ = read_choice(group, choice)
    return {key: written(value) for key, value in leaves(node).items()}


@cache
def _sources() -> dict[str, set[str]]:
    """The keys from which others are computed, such as trainer.max_steps for schedule.steps."""
    sources: dict[str, set[str]] = {}
    for path in sorted(CONFIGS.glob("*/*.yaml")):
        node, _ = read_choice(path.parent.name, path.stem)
        for key, value in node.items():
            if isinstance(value, str) and "${" in value:
                sources.setdefault(f"{path.parent.name}.{key}", set()).update(re.findall(r"\w+\.\w+", value))
    return sources


def _number(printed: str) -> float | str:
    """The number in a text, so that 1 and 1.0 compare equal; any other text is returned unchanged."""
    try:
        value = float(printed)
    except ValueError:
        return printed
    return value if math.isfinite(value) else printed
