"""Restricts what the configuration of a run directory may contain and instantiate, because anyone may have written it.

The YAML files in configs/ are the list of what may be instantiated: a stored node may name only a class that a file of
its own group names, with the arguments and types of that file. The user's own command line is trusted.
"""

from collections.abc import Collection, Iterator
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import Field, ValidationError, create_model

from nmt.config.fields import Keys, Text, expects
from nmt.config.keys import leaves, value_at, with_values
from nmt.config.messages import invalid, written
from nmt.config.nodes import CONFIGS, Config, Node, default_node, interpolations
from nmt.errors import Mistake
from nmt.sites import SITES

FOR_LOADING = ("model", "scorer", "normalizer", "window", "search", "context", *SITES)
"""The keys of a configuration that are used when a run is loaded."""

# No configuration is larger. The limits are needed because a few lines of YAML can expand to a billion values, and
# because PyYAML needs seconds for a megabyte.
_MOST_BYTES = 2**18
_MOST_VALUES = 10_000
_DEEPEST = 50
_LONGEST_NUMBER = 40
_LARGEST_NUMBER = 2**63 - 1
_REMEDY = "it is not loaded: use a run directory written by nmt.train."
_KINDS = ("str", "int", "float", "bool", "null", "seq", "map")
_RESOLVER = yaml.SafeLoader("")


def read_plain_yaml(file: Path) -> Any:
    """The content of a YAML file: text, numbers, true, false and null in lists and dictionaries with text as keys.

    Raises Mistake for a file that is damaged, too large or too deeply nested, and for any other kind of value. All of
    it is checked before a single value is made.
    """
    with file.open("rb") as content:
        start = content.read(_MOST_BYTES + 1)
    if len(start) > _MOST_BYTES:
        raise Mistake(f"{file} has more than {_MOST_BYTES // 1024} KiB, so it is not a configuration of nmt; {_REMEDY}")
    try:
        root = yaml.compose(start.decode(), Loader=yaml.SafeLoader)
    # ValueError: PyYAML converts numbers in directives and escape sequences without checking them.
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError, ValueError, OverflowError) as error:
        raise Mistake(f"{file} is damaged: it is not YAML.") from error
    if root is None:
        return None
    _size(root, file, {}, 0)
    return yaml.SafeLoader("").construct_document(root)


def _size(node: yaml.Node, file: Path, sizes: dict[int, int], depth: int) -> int:
    """How many values a node expands to, with its aliases; `sizes` are those of the nodes that are known.

    Raises Mistake for what no configuration has.
    """
    if id(node) in sizes:
        return sizes[id(node)]
    # An alias inside its own anchor expands without end.
    sizes[id(node)] = _MOST_VALUES + 1
    if depth > _DEEPEST:
        raise Mistake(f"{file} is nested more than {_DEEPEST} levels deep, so it is not a configuration; {_REMEDY}")
    kind = node.tag.removeprefix("tag:yaml.org,2002:")
    if kind not in _KINDS:
        raise Mistake(f"{file} holds a value of the kind {_shown(kind)}, which no configuration has; {_REMEDY}")
    size = 1
    if isinstance(node, yaml.ScalarNode):
        _check_scalar(node, kind, file)
    elif isinstance(node, yaml.SequenceNode) and kind == "seq":
        size += sum(_size(part, file, sizes, depth + 1) for part in node.value)
    elif isinstance(node, yaml.MappingNode) and kind == "map":
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.tag != "tag:yaml.org,2002:str":
                raise Mistake(f"{file} has a key that is not text, which no configuration has; {_REMEDY}")
            _check_scalar(key, "str", file)
            size += _size(value, file, sizes, depth + 1)
    else:
        raise Mistake(f"{file} holds a value marked as {kind}, which no configuration has; {_REMEDY}")
    if size > _MOST_VALUES:
        raise Mistake(f"{file} has more than {_MOST_VALUES:,} values, so it is not a configuration of nmt; {_REMEDY}")
    sizes[id(node)] = size
    return size


def _check_scalar(node: yaml.ScalarNode, kind: str, file: Path) -> None:
    text: str = node.value
    if kind == "str":
        if "\0" in text or any("\ud800" <= character <= "\udfff" for character in text):
            raise Mistake(f"{file} holds a text with a character that no configuration has; {_REMEDY}")
        return
    # A tag such as !!int may stand before any text, from which PyYAML could not make a number.
    if kind in ("seq", "map") or _RESOLVER.resolve(yaml.ScalarNode, text, (True, False)) != node.tag:
        raise Mistake(f"{file} holds a value marked as {kind}, which no configuration has; {_REMEDY}")
    if kind in ("int", "float") and (
        len(text) > _LONGEST_NUMBER or (kind == "int" and abs(_RESOLVER.construct_yaml_int(node)) > _LARGEST_NUMBER)
    ):
        raise Mistake(f"{file} holds the number {_shown(text)}, which is too large for any setting; {_REMEDY}")


def check_nodes(config: Config, file: Path, keys: Collection[str] | None = None, given: Config | None = None) -> None:
    """Checks each node of a configuration that was read from `file`, without importing or calling anything.

    `keys` are the keys to check, None for all. Raises Mistake for a `_target_` that no YAML file of its group names,
    unless the user's own configuration `given` has the same one at the same place; for arguments that the YAML file
    lacks or has with a different type; and for interpolations, which could resolve to a `_target_`.
    """
    for key in config if keys is None else keys:
        if text := next(interpolations(config.get(key)), None):
            raise Mistake(f"{file} holds {_shown(text)}, which is an unresolved interpolation; {_REMEDY}")
        for path, node in _nodes((key,), config.get(key)):
            _check_node(path, node, file, given or {})


def _check_node(path: tuple[str, ...], node: Node, file: Path, given: Config) -> None:
    key = ".".join(path)
    choices = {} if len(path) == 1 and path[0] in SITES else _of_place(path)
    if "_target_" not in node and not choices:
        return
    target = node.get("_target_")
    if isinstance(target, str) and target in choices:
        _check_arguments(path, node, choices[target], file)
    elif target != value_at(given, f"{key}._target_", default={}):
        allowed = f"only {', '.join(choices)} may stand" if choices else "no class may stand"
        raise Mistake(f"{file} names {_shown(target)} at {key}, where {allowed}; {_REMEDY}")


def _check_arguments(path: tuple[str, ...], node: Node, declared: list[Node], file: Path) -> None:
    """Raises Mistake if the arguments fit none of the YAML files that name this class."""
    for number, default in enumerate(declared, 1):
        kind = _arguments(path, default)
        try:
            kind.model_validate(node)
            return
        except ValidationError as error:
            if number == len(declared):
                raise Mistake(f"{file} cannot be used: {invalid(error, kind, '.'.join(path))}") from error


def _arguments(path: tuple[str, ...], default: Node) -> type[Keys]:
    """A settings class with the names and types of a node's values in its YAML file.

    A value that is null there can have any type, which only the constructor knows.
    """
    fields: dict[str, Any] = {}
    for number, (name, value) in enumerate(default.items()):
        kind: Any = type(value)
        if _of_place((*path, name)):
            kind = Node if value is not None else Node | None
        elif name in ("_target_", "_partial_"):
            kind = Annotated[Literal[value], expects(written(value))]
        elif isinstance(value, str) and "${" in value:
            kind = int | float | None  # a width or a number of steps
        elif value is None:
            kind = Text | None if path[0] == "logger" else Any
        elif isinstance(value, dict) and value:
            kind = _arguments((*path, name), value)
        elif isinstance(value, str):
            kind = Text
        # By alias, because pydantic does not allow field names such as _target_.
        fields[f"key_{number}"] = (kind, Field(alias=name))
    return create_model("Node", __base__=Keys, **fields)


def _nodes(path: tuple[str, ...], value: Any) -> Iterator[tuple[tuple[str, ...], Node]]:
    """All dictionaries inside a value and the value itself, each with the keys that lead to it."""
    if isinstance(value, dict):
        yield path, value
        for name, part in value.items():
            yield from _nodes((*path, name), part)
    elif isinstance(value, list):
        for part in value:
            yield from _nodes(path, part)


def _of_place(path: tuple[str, ...]) -> dict[str, list[Node]]:
    """The nodes that the YAML files have for this place, by their `_target_`; empty if it is no place for a node."""
    places = _places()
    if path[0] == "logger":
        return places["logger"] if len(path) == 2 else {}
    # A document model wraps another model, and its encoder is not the encoder of a recurrent model.
    return places.get(f"{path[0]}.{path[-1]}") or places.get(path[-1], {})


@cache
def _places() -> dict[str, dict[str, list[Node]]]:
    """The nodes in configs/ by place and `_target_`. A place is a key such as scorer, or context.KEY inside context."""
    groups = [((file.parent.name,), _choice(file.parent.name, file.stem)) for file in sorted(CONFIGS.glob("*/*.yaml"))]
    commands = [((), _command(file)) for file in sorted(CONFIGS.glob("*.yaml"))]
    places: dict[str, dict[str, list[Node]]] = {}
    for start, content in [*groups, *commands]:
        for path, node in _nodes(start, content):
            if "_target_" in node:
                place = "logger" if path[0] == "logger" else path[-1]
                place = f"context.{place}" if path[0] == "context" else place
                places.setdefault(place, {}).setdefault(node["_target_"], []).append(node)
    return places


def _choice(group: str, name: str) -> Config:
    """What a choice of a group sets, with what it changes of the choices in its defaults."""
    node = default_node(group, name)
    for entry in _defaults(CONFIGS / group / f"{name}.yaml"):
        if isinstance(entry, str) and entry != "_self_":
            node = with_values(_choice(group, entry), leaves(node))
    return node


def _command(file: Path) -> Config:
    """What the file of a command sets, with the parts that its defaults add to its own keys, such as norm@model."""
    content: Config = yaml.safe_load(file.read_text(encoding="utf-8"))
    for entry in _defaults(file):
        for key, choice in entry.items() if isinstance(entry, dict) else ():
            group, _, parent = key.partition("@")
            if choice is not None and parent in content:
                content[parent] = content[parent] | {group: default_node(group, choice)}
    return content


def _defaults(file: Path) -> list[Any]:
    content: Config = yaml.safe_load(file.read_text(encoding="utf-8")) or {}
    defaults: list[Any] = content.get("defaults", [])
    return defaults


def _shown(value: object) -> str:
    """A value on one line, with everything that a terminal would interpret escaped, shortened if it is long."""
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:100]}..."
