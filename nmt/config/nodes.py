"""Where the YAML files are, and how a YAML node becomes the object that it describes."""

import functools
import inspect
import pydoc
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, cast

import yaml

from nmt.config.messages import unknown
from nmt.errors import Mistake

Config = dict[str, Any]
"""A whole configuration as plain values."""

Node = dict[str, Any]
"""The description of an object: `_target_` and its arguments."""

_PACKAGE = Path(__file__).resolve().parents[1]
# In a wheel the configurations are inside the package; in a checkout they are next to it.
CONFIGS = next(path for path in (_PACKAGE / "_configs", _PACKAGE.parent / "configs") if path.is_dir())

_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def from_yaml(text: str) -> Any:
    """Parses our own YAML, with libyaml if PyYAML has it (ten times as fast)."""
    return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def read_yaml(file: Path) -> Any:
    """The contents of one of our own YAML files."""
    return from_yaml(file.read_text(encoding="utf-8"))


@functools.cache
def choice_names() -> dict[str, str]:
    """The name of the YAML file in configs/ for each class, which is the choice of its group that makes it."""
    names: dict[str, str] = {}
    for path in sorted(CONFIGS.glob("*/*.yaml")):
        if target := default_node(path.parent.name, path.stem).get("_target_"):
            names.setdefault(target, path.stem)
    return names


def read_choice(group: str, name: str) -> tuple[Node, dict[str, str]]:
    """What the file of a choice sets below its group, with interpolations as text, and the choices of the parts inside.

    The parts of model=transformer are {norm: layer_norm}.
    """
    content = read_yaml(CONFIGS / group / f"{name}.yaml") or {}
    parts = {
        key.removeprefix("/").removesuffix("@_here_"): chosen
        for entry in content.pop("defaults", ())
        for key, chosen in (entry.items() if isinstance(entry, dict) else ())
        if key.endswith("@_here_")
    }
    # Some are nested under the name of their group: those of which a site can have its own, such as scorers, and those
    # that also set keys outside their group, such as schedules.
    return content.get(group) or content, parts


def default_node(group: str, name: str) -> Node:
    """The node that a choice of a group makes, with the nodes inside it that it chooses; interpolations are text."""
    node, parts = read_choice(group, name)
    return node | {part: default_node(part, chosen) for part, chosen in parts.items()}


def make(node: Config, kind: type[Any] = object, /, **arguments: Any) -> Any:
    """The object that a YAML node describes by `_target_` and its arguments.

    Raises Mistake if `_target_` does not name anything callable, if the node has an argument that its constructor
    does not take, or lacks one that it needs, if it contains an interpolation or a missing
    value, or if the result is not of the given kind (for a partial node, what it will make). An error from the
    constructor is raised unchanged.
    """
    if not isinstance(node.get("_target_"), str):
        raise Mistake(f"_target_ is {node.get('_target_')!r:.100}; it must be the name of a class, as in configs/.")
    if text := next(unresolved(node), None):
        raise Mistake(
            f"{node['_target_']} has the value '{text:.100}', an interpolation or a missing value: write a value."
        )
    check_arguments(node, node["_target_"], arguments)
    from hydra.errors import InstantiationException
    from hydra.utils import instantiate  # takes as long to import as a light command needs in all

    try:
        made = instantiate(node, _convert_="all", **arguments)
    except InstantiationException as error:
        if error.__cause__ is None:
            reason = str(error).partition("\n")[0].rstrip(":.")
            raise Mistake(f"{reason}. Check the value of _target_.") from error
        # Hydra wraps what a constructor raises, and so hides its type and the line that raised it.
        raise error.__cause__ from error.__cause__.__cause__
    if isinstance(made, functools.partial):
        # What a function will make is not known yet.
        fits = not isinstance(made.func, type) or issubclass(made.func, kind)
    else:
        fits = isinstance(made, kind)
    if not fits:
        article = "an" if kind.__name__[0] in "AEIOU" else "a"
        raise Mistake(
            f"{node['_target_']} does not make {article} {kind.__name__}, which is needed here; choose another "
            "_target_."
        )
    return made


def unresolved(value: Any) -> Iterator[str]:
    """The texts inside a value that Hydra does not take as they are: interpolations, which may resolve to any node, and
    ??? for a missing value. Texts in lists and keys of dictionaries are included.
    """
    if isinstance(value, str):
        if "${" in value or value == "???":
            yield value
    elif isinstance(value, (dict, list)):
        for part in [*value, *value.values()] if isinstance(value, dict) else value:
            yield from unresolved(part)


def check_arguments(node: Any, place: str, passed: Collection[str] = ()) -> None:
    """Checks the keys of a node and of all nodes inside it against their constructors, which are not called.

    `place` is the node's key, or the name of its class. Code passes the arguments named `passed` to the outer
    constructor. Raises Mistake as `make` does.
    """
    if isinstance(node, list):
        for part in node:
            check_arguments(part, place)
    if not isinstance(node, dict):
        return
    for key, part in node.items():
        check_arguments(part, f"{place}.{key}")
        if str(key).startswith("_") and str(key).endswith("_") and key not in ("_target_", "_partial_"):
            raise Mistake(f"{place}: the key {key} is not allowed in a node; remove it.")
        if key == "_partial_" and not isinstance(part, bool):
            raise Mistake(f"{place}._partial_ is {part!r:.100}; it must be true or false.")
    if not isinstance(target := node.get("_target_"), str):
        return
    located = _located(target)
    try:
        parameters = inspect.signature(located).parameters
    except ValueError:  # written in C, without a signature
        return
    names = [name for name, parameter in parameters.items() if parameter.kind in _NAMED]
    written = [key for key in node if not (key.startswith("_") and key.endswith("_"))]
    if not any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values()):
        for name in written:
            if name not in names:
                raise Mistake(unknown(f"argument of {target}", name, names))
    # Code adds arguments to a partial node later, so nothing can be said yet about those that it lacks.
    if not node.get("_partial_"):
        for name in names:
            if parameters[name].default is inspect.Parameter.empty and name not in {*written, *passed}:
                raise Mistake(f"{target} needs the argument '{name}'; add it to the node with this _target_.")


def _located(target: str) -> Any:
    """What a target names. An error from its module, which is a bug there, is raised unchanged."""
    try:
        located = pydoc.locate(target) if "." in target else None
    except pydoc.ErrorDuringImport as error:
        raise cast(Exception, error.value) from None
    if not callable(located):
        raise Mistake(f"Error loading '{target}'. Check the value of _target_.")
    return located
