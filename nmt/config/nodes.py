"""A YAML node is one object: where the YAML files are, and how a node becomes what it describes."""

from pathlib import Path
from typing import Any

from hydra.errors import InstantiationException
from hydra.utils import instantiate

Config = dict[str, Any]
"""A whole configuration as plain values."""

Node = dict[str, Any]
"""The description of an object: `_target_` and its arguments."""

_PACKAGE = Path(__file__).resolve().parents[1]
# In a wheel the configurations are inside the package; in a checkout they are next to it.
CONFIGS = next(path for path in (_PACKAGE / "_configs", _PACKAGE.parent / "configs") if path.is_dir())


def make(node: Config, **arguments: Any) -> Any:
    """The object that a YAML node describes by `_target_` and its arguments; a constructor's error comes out as is.

    Raises ValueError if `_target_` names nothing that can be called.
    """
    try:
        return instantiate(node, _convert_="all", **arguments)
    except InstantiationException as error:
        if error.__cause__ is None or isinstance(error.__cause__, ImportError):
            reason = str(error.__cause__ or error).splitlines()[0].rstrip(":.")
            raise ValueError(f"{reason}. Check its _target_.") from error
        raise error.__cause__ from None
