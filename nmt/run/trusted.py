"""What the configuration in a run directory, which may come from anywhere, is allowed to have made."""

import pydoc
from collections.abc import Collection, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

LOADED = ("nmt.models", "nmt.attention", "nmt.decoding")
"""Packages of the classes that the commands that read a run make."""
TRAINED = (*LOADED, "nmt.training.schedules", "torch.optim", "lightning.pytorch.loggers")
"""Packages of what a resumed training makes."""

_MOST = 10_000


def check_targets(node: Any, file: Path, packages: Collection[str], given: Any = None) -> None:
    """Looks at each `_target_` in `node`, which was read from `file`, without calling any.

    Raises ValueError for one that is no class, and no function of ours, of one of the `packages`, unless the user's own
    configuration `given` has it too; and for a value that is not resolved, which could become one.
    """
    own = {target for name, target in _values(given) if name == "_target_"}
    # More than any configuration has: YAML can write a list of a billion values in a few lines.
    values = list(islice(_values(node), _MOST + 1))
    if len(values) > _MOST:
        raise ValueError(f"{file} has more than {_MOST:,} values, which is no configuration of nmt; it is not loaded.")
    for name, value in values:
        if name == "_target_" and value not in own and not _is_of(str(value), packages):
            raise ValueError(f"{file} names '{value}', which is no part of {', '.join(packages)}; it is not loaded.")
        if isinstance(value, str) and "${" in value:
            raise ValueError(f"{file} holds '{value}', which is not resolved; it is not loaded.")


def _values(node: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """All leaves of nested dictionaries and lists, each with the key that it stands under."""
    if isinstance(node, dict):
        for key, part in node.items():
            yield from _values(part, str(key))
    elif isinstance(node, list):
        for part in node:
            yield from _values(part, name)
    else:
        yield name, node


def _is_of(target: str, packages: Collection[str]) -> bool:
    if not target.startswith(tuple(f"{package}." for package in packages)):
        return False
    try:
        found = pydoc.locate(target)
    except pydoc.ErrorDuringImport:
        return False
    # A module's own imports can be reached through it: where a thing was defined decides.
    defined = f"{getattr(found, '__module__', None)}."
    makes = isinstance(found, type) or (callable(found) and defined.startswith("nmt."))
    return makes and defined.startswith(tuple(f"{package}." for package in packages))
