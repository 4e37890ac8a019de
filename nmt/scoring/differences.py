"""The settings that differ between configurations, for the first columns of a comparison."""

import math
from collections.abc import Sequence
from functools import cache

import yaml

from nmt.config.keys import leaves
from nmt.config.messages import written
from nmt.config.nodes import CONFIGS, Config

# These keys do not affect the result of a run.
_NOT_COMPARED = ("run_dir", "resume", "overwrite", "cache_dir", "logger", "callbacks", "checkpoints")


def differences(configs: Sequence[Config]) -> dict[str, list[str]]:
    """The keys whose values differ between the configurations that have them, with the value printed for each.

    An object is printed as the name of its YAML file, such as `dot`. A key that the sites of a model inherit from the
    whole configuration, such as the scorer, appears once.
    """
    names = _names_of_classes()
    printed = [
        {
            key: names.get(value, value.rpartition(".")[2]) if key.endswith("_target_") else written(value)
            for key, value in leaves(config).items()
            if key.split(".")[0] not in _NOT_COMPARED
        }
        for config in configs
    ]
    keys = dict.fromkeys(key for values in printed for key in values)
    differ = [key for key in keys if len({_number(values[key]) for values in printed if key in values}) > 1]
    columns = {key: [values.get(key, "") for values in printed] for key in differ}
    repeated = {
        key for key in columns for other in columns if key.endswith(f".{other}") and columns[key] == columns[other]
    }
    return {key.removesuffix("._target_"): values for key, values in columns.items() if key not in repeated}


def _number(printed: str) -> float | str:
    """The number that a text stands for, so that 1 and 1.0 compare equal; other text is returned unchanged."""
    try:
        value = float(printed)
    except ValueError:
        return printed
    return value if math.isfinite(value) else printed


@cache
def _names_of_classes() -> dict[str, str]:
    """The name of the YAML file in configs/ for each class."""
    names: dict[str, str] = {}
    for path in sorted(CONFIGS.glob("*/*.yaml")):
        node = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
        # Scorers, normalizers and norms are nested under the name of their group, so that a site can have its own.
        target = (node.get(path.parent.name) or node).get("_target_")
        if target:
            names.setdefault(target, path.stem)
    return names
