"""What the configuration in a run directory, which may come from anywhere, is allowed to have made."""

import pydoc
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

_LOGGERS = ("lightning.pytorch.loggers.CSVLogger", "lightning.pytorch.loggers.TensorBoardLogger")
LOADED = ("nmt.models", "nmt.attention", "nmt.decoding")
"""Packages of the classes that the commands that read a run make."""
TRAINED = (*LOADED, "nmt.training.schedules", "nmt.training.objectives", "torch.optim", *_LOGGERS)
"""Packages and names of what a resumed training makes."""

# More than any configuration has: YAML can write a list of a billion values in a few lines.
_MOST = 10_000
_REMEDY = "it is not loaded: use a run directory that nmt.train wrote."


def check_targets(node: Any, file: Path, allowed: Collection[str], given: Any = None) -> None:
    """Looks at each `_target_` in `node`, which was read from `file`, without calling any.

    Raises ValueError for one that is no class, and no function of ours, of what is `allowed`, unless the user's own
    configuration `given` has it too; for values of other kinds than a configuration has, and for one that is not
    resolved, which could become a `_target_`.
    """
    own = {target for name, target in _values(given, file) if name == "_target_"}
    for name, value in _values(node, file):
        if name == "_target_" and value not in own and not _is_of(str(value), allowed):
            raise ValueError(f"{file} names '{value}', which is no part of {', '.join(allowed)}; {_REMEDY}")
        if "${" in str(value):
            raise ValueError(f"{file} holds '{value}', which is not resolved; {_REMEDY}")


def _values(node: Any, file: Path) -> Iterator[tuple[str, Any]]:
    """All leaves of nested dictionaries and lists, each with the key that it stands under."""
    waiting, number = [("", node)], 0
    while waiting:
        name, value = waiting.pop()
        number += 1
        if number > _MOST:
            raise ValueError(f"{file} has more than {_MOST:,} values and is no configuration of nmt; {_REMEDY}")
        if type(value) is dict:
            # A key is text as well.
            waiting += [(str(key), part) for key, part in value.items()] + [("", key) for key in value]
        elif type(value) is list:
            waiting += [(name, part) for part in value]
        elif value is None or type(value) in (str, int, float, bool):
            yield name, value
        else:
            raise ValueError(f"{file} holds a {type(value).__name__}, which no configuration has; {_REMEDY}")


def _is_of(target: str, packages: Collection[str]) -> bool:
    if target in packages and target in _LOGGERS:
        return True
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
