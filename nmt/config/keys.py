"""Dotted keys, such as model.dropout, of a plain configuration."""

from collections.abc import Mapping
from typing import Any

from nmt.config.nodes import Config


def value_at(config: Mapping[str, Any], key: str, default: Any = None) -> Any:
    """The value under a dotted key, or `default` if there is no such key."""
    value: Any = config
    for part in key.split("."):
        if not isinstance(value, dict) or part not in value:
            return default
        value = value[part]
    return value


def normal_form(config: Config) -> Config:
    """The configuration with data.train as a list, even if it was written as a single prefix."""
    train = value_at(config, "data.train")
    return with_values(config, {"data.train": [train]}) if isinstance(train, str) else config


def leaves(value: Any, key: str = "") -> Config:
    """The values inside `value` that are not mappings, by full dotted key; `key` is the key of `value` itself."""
    if not isinstance(value, dict):
        return {key: value}
    inside: Config = {}
    for name, part in value.items():
        inside |= leaves(part, f"{key}.{name}" if key else str(name))
    return inside


def with_values(config: Config, values: Mapping[str, Any]) -> Config:
    """A copy of a configuration with new values under some dotted keys."""
    new = dict(config)
    for key, value in values.items():
        name, _, rest = key.partition(".")
        new[name] = with_values(new.get(name) or {}, {rest: value}) if rest else value
    return new
