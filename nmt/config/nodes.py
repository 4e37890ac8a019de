"""Where the YAML files are, and how a YAML node becomes the object that it describes."""

from pathlib import Path
from typing import Any

from hydra.errors import InstantiationException
from hydra.utils import instantiate

from nmt.errors import Mistake

Config = dict[str, Any]
"""A whole configuration as plain values."""

Node = dict[str, Any]
"""The description of an object: `_target_` and its arguments."""

_PACKAGE = Path(__file__).resolve().parents[1]
# In a wheel the configurations are inside the package; in a checkout they are next to it.
CONFIGS = next(path for path in (_PACKAGE / "_configs", _PACKAGE.parent / "configs") if path.is_dir())


def make(node: Config, **arguments: Any) -> Any:
    """The object that a YAML node describes by `_target_` and its arguments.

    Raises Mistake if `_target_` does not name anything callable. An error from the constructor is raised unchanged.
    """
    try:
        return instantiate(node, _convert_="all", **arguments)
    except InstantiationException as error:
        if error.__cause__ is None or isinstance(error.__cause__, ImportError):
            reason = str(error.__cause__ or error).splitlines()[0].rstrip(":.")
            raise Mistake(f"{reason}. Check the value of _target_.") from error
        raise error.__cause__ from None
