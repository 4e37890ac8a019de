"""Restricts which classes the configuration of a run directory may instantiate, because anyone may have written it."""

import pydoc
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from nmt.errors import Mistake

_LOGGERS = tuple(
    f"lightning.pytorch.loggers.{name}" for name in ("CSVLogger", "TensorBoardLogger", "MLFlowLogger", "WandbLogger")
)
"""The classes of the YAML files in configs/logger."""
FOR_LOADING = ("nmt.models", "nmt.attention", "nmt.decoding")
"""Packages whose classes are instantiated when a run is loaded."""
FOR_RESUMING = (*FOR_LOADING, "nmt.training.schedules", "nmt.training.objectives", "torch.optim", *_LOGGERS)
"""Packages and classes that a resumed run instantiates."""

# No configuration has this many values. A limit is needed because a few lines of YAML can expand to a billion values.
_MOST = 10_000
_REMEDY = "it is not loaded: use a run directory written by nmt.train."


def check_targets(node: Any, file: Path, allowed: Collection[str], given: Any = None) -> None:
    """Checks each `_target_` in `node`, which was read from `file`, without calling any of them.

    Raises Mistake for a target that is neither a class nor one of our own functions within `allowed`, unless the
    user's own configuration `given` contains it too. Also raises Mistake for values of types that no configuration
    has, and for unresolved interpolations, which could resolve to a `_target_`.
    """
    given_targets = {target for name, target in _values(given, file) if name == "_target_"}
    for name, value in _values(node, file):
        if name == "_target_" and value not in given_targets and not _is_of(str(value), allowed):
            raise Mistake(f"{file} names '{value}', which does not belong to {', '.join(allowed)}; {_REMEDY}")
        if "${" in str(value):
            raise Mistake(f"{file} holds '{value}', which is an unresolved interpolation; {_REMEDY}")


def _values(node: Any, file: Path) -> Iterator[tuple[str, Any]]:
    """All leaves of nested dictionaries and lists, each with its key."""
    waiting, number = [("", node)], 0
    while waiting:
        name, value = waiting.pop()
        number += 1
        if number > _MOST:
            raise Mistake(f"{file} has more than {_MOST:,} values, so it is not a configuration of nmt; {_REMEDY}")
        if type(value) is dict:
            # Keys are checked too, because they are text as well.
            waiting += [(str(key), part) for key, part in value.items()] + [("", key) for key in value]
        elif type(value) is list:
            waiting += [(name, part) for part in value]
        elif value is None or type(value) in (str, int, float, bool):
            yield name, value
        else:
            raise Mistake(f"{file} holds a {type(value).__name__}, which no configuration has; {_REMEDY}")


def _is_of(target: str, packages: Collection[str]) -> bool:
    if target in packages and target in _LOGGERS:
        return True
    # Checked first, because locating a target imports its module.
    if not target.startswith(tuple(f"{package}." for package in packages)):
        return False
    try:
        located = pydoc.locate(target)
    except pydoc.ErrorDuringImport:
        return False
    # A module also exposes what it imports, so what counts is where the object was defined.
    defined_in = f"{getattr(located, '__module__', None)}."
    makes_objects = isinstance(located, type) or (callable(located) and defined_in.startswith("nmt."))
    return makes_objects and defined_in.startswith(tuple(f"{package}." for package in packages))
