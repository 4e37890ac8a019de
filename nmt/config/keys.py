"""Dotted keys, such as model.dropout, and what a configuration has under them."""

from typing import Any

from nmt.config.nodes import Config

NOTHING = object()
"""What is under a key that there is not."""


def value_at(config: Config, key: str, default: Any = None) -> Any:
    """The value under a dotted key; `default` where there is no such key."""
    value: Any = config
    for part in key.split("."):
        if not isinstance(value, dict) or part not in value:
            return default
        value = value[part]
    return value


def leaves(value: Any, key: str = "") -> Config:
    """The values below a dotted key that are no groups, under their own dotted keys."""
    if not isinstance(value, dict):
        return {key: value}
    names = {name: f"{key}.{name}" if key else str(name) for name in value}
    return {leaf: of for name, part in value.items() for leaf, of in leaves(part, names[name]).items()}
