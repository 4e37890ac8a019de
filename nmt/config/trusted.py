"""Restricts what the configuration of a run directory may contain and instantiate, because anyone may have written it.

The YAML files in configs/ are the list of what may be instantiated: a stored node may name only a class that a file of
its own group names, with the arguments and types of that file. The user's own command line is trusted.
"""

from collections.abc import Collection, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from nmt.config.keys import leaves, value_at
from nmt.config.messages import stored_invalid
from nmt.config.nodes import CONFIGS, Config, Node, read_choice, read_yaml, unresolved
from nmt.config.schema import check_node
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
# libyaml's is ten times as fast, but not in every build of PyYAML.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _TooLarge(Mistake):
    """A configuration has more values or bytes than a run directory may hold."""


def check_storable(config: Config) -> None:
    """Raises Mistake for a configuration that `read_plain_yaml` would refuse, such as one with too many corpora."""
    text = yaml.safe_dump(config, allow_unicode=True)
    try:
        if len(text.encode()) > _MOST_BYTES:
            raise _TooLarge(f"more than {_MOST_BYTES // 1024} KiB")
        root: Any = yaml.compose(text, Loader=_LOADER)
        _size(root, Path("config.yaml"), {}, 0)
    except _TooLarge as error:
        number = sum(len(value) for value in leaves(config).values() if isinstance(value, list))
        raise Mistake(
            f"The configuration has lists with {number:,} entries, more than a run directory may hold: join the files "
            "of data.train, both sides in the same order, as in cat shards/*.en > train.en; cat shards/*.vi > train.vi."
        ) from error


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
        text = start.decode()
        _check_depth(text, file)
        root = yaml.compose(text, Loader=_LOADER)
    except Mistake:
        raise
    # ValueError: PyYAML converts numbers in directives and escape sequences without checking them.
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError, ValueError, OverflowError) as error:
        raise Mistake(f"{file} is damaged: it is not YAML.") from error
    if root is None:
        return None
    _size(root, file, {}, 0)
    return yaml.SafeLoader("").construct_document(root)


def _check_depth(text: str, file: Path) -> None:
    """Raises Mistake for lists and dictionaries that are nested too deeply: libyaml would crash on them."""
    depth = 0
    for event in yaml.parse(text, Loader=_LOADER):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEEPEST + 1:
            raise _too_deep(file)


def _too_deep(file: Path) -> Mistake:
    return Mistake(f"{file} is nested more than {_DEEPEST} levels deep, so it is not a configuration; {_REMEDY}")


def _size(node: yaml.Node, file: Path, sizes: dict[int, int], depth: int) -> int:
    """How many values a node expands to, with its aliases; `sizes` are those of the nodes that are known.

    Raises Mistake for what no configuration has.
    """
    if id(node) in sizes:
        return sizes[id(node)]
    # An alias inside its own anchor expands without end.
    sizes[id(node)] = _MOST_VALUES + 1
    if depth > _DEEPEST:
        raise _too_deep(file)
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
        raise _TooLarge(f"{file} has more than {_MOST_VALUES:,} values, so it is not a configuration of nmt; {_REMEDY}")
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
        raise Mistake(f"{file} contains the number {_shown(text)}, which is larger than any setting allows; {_REMEDY}")


def check_nodes(config: Config, file: Path, keys: Collection[str] | None = None, given: Config | None = None) -> None:
    """Checks each node of a configuration that was read from `file`, without importing or calling anything.

    `keys` are the keys to check, None for all. Raises Mistake for a `_target_` that no YAML file of its group names,
    unless the user's own configuration `given` has the same one at the same place; for arguments that the YAML file,
    or the user's node with this `_target_`, lacks or has with a different type; and for interpolations, which
    could resolve to a `_target_`.
    """
    for key in config if keys is None else keys:
        if text := next(unresolved(config.get(key)), None):
            raise Mistake(
                f"{file} holds {_shown(text)}, which is an unresolved interpolation or a missing value; {_REMEDY}"
            )
        for path, node in _nodes((key,), config.get(key)):
            _check_node(path, node, file, given)


def _check_node(path: tuple[str, ...], node: Node, file: Path, given: Config | None) -> None:
    key = ".".join(path)
    choices = _choices(path)
    if "_target_" not in node and not choices:
        return
    target = node.get("_target_")
    given_too = value_at(given or {}, f"{key}._target_", default={}) == target
    if isinstance(target, str) and target in choices:
        # The constructors check ranges, not types.
        try:
            check_node(key, node, _default(path, node, choices[target]))
        except Mistake as error:
            # The user may have put the class in place of another one, and kept the arguments of that one.
            if not given_too or not _fits(path, node, value_at(given or {}, key)):
                repeat = f" If the run's own command has {key}._target_={target}, repeat that argument."
                remedy = "" if given is None or given_too else repeat
                raise Mistake(f"{file} cannot be used: {stored_invalid(error)}{remedy}") from error
    elif not given_too:
        allowed = f"only {', '.join(choices)} is allowed" if choices else "no class is allowed"
        # Do not repeat the stored name: its author could choose what the message tells the user to type.
        repeat = f" If it is a class of your own, repeat {key}._target_=CLASS, as in the run's own command."
        remedy = "" if given is None else repeat
        raise Mistake(f"{file} names {_shown(target)} at {key}, where {allowed}; {_REMEDY}{remedy}")


def _fits(path: tuple[str, ...], node: Node, declared: Node) -> bool:
    try:
        check_node(".".join(path), node, _default(path, node, declared))
    except Mistake:
        return False
    return True


def _default(path: tuple[str, ...], node: Node, declared: Node) -> Node:
    """A node's YAML file, without the nodes inside it, which are checked at their own places."""
    default: Node = {}
    for name, value in declared.items():
        if _choices((*path, name)):
            # null if a choice leaves this part out, as context=hierarchical_encoder does with context.model.decoder
            omitted = node.get(name) is None and ".".join((*path, name)) in _group(path[0]).omitted
            default[name] = None if omitted else {}
        else:
            # Any text may replace a logger's null, which is filled in when the logger is made.
            default[name] = "" if path[0] == "logger" and value is None and node.get(name) is not None else value
    return default


def _nodes(path: tuple[str, ...], value: Any) -> Iterator[tuple[tuple[str, ...], Node]]:
    """All dictionaries inside a value and the value itself, each with the keys that lead to it."""
    if isinstance(value, dict):
        yield path, value
        for name, part in value.items():
            yield from _nodes((*path, name), part)
    elif isinstance(value, list):
        for part in value:
            yield from _nodes(path, part)


def _choices(path: tuple[str, ...]) -> dict[str, Node]:
    """The nodes that the YAML files have for this place, by their `_target_`; empty if it is no place for a node."""
    if path[0] == "logger":
        return _loggers() if len(path) == 2 else {}
    # The outermost group decides: the encoder of a document model is not the encoder of a recurrent model.
    candidates = (_group(name).nodes.get(".".join(path[start:])) for start, name in enumerate(path))
    return next(filter(None, candidates), {})


class _Group(NamedTuple):
    """What the YAML files of a group have, by dotted key."""

    nodes: dict[str, dict[str, Node]]
    """The nodes by `_target_`, each with its arguments. Those that it gets from another group are `{}`."""
    omitted: set[str]
    """Where a file has null."""


@cache
def _group(name: str) -> _Group:
    group = _Group({}, set())
    if name not in _group_names():
        return group
    files = [read_choice(name, file.stem) for file in sorted((CONFIGS / name).glob("*.yaml"))]
    for content, parts in files + ([_pretrained_model()] if name == "model" else []):
        for path, node in _nodes((name,), content | {part: {} for part in parts}):
            key = ".".join(path)
            if "_target_" in node:
                group.nodes.setdefault(key, {}).setdefault(node["_target_"], node)
            group.omitted.update(f"{key}.{argument}" for argument, value in node.items() if value is None)
    return group


@cache
def _group_names() -> set[str]:
    """Only these are read: the name of a key may be anything, even a path."""
    return {file.parent.name for file in CONFIGS.glob("*/*.yaml")} - {"experiment"}


def _pretrained_model() -> tuple[Node, dict[str, str]]:
    """The model of nmt.pretrain, which is no choice of a group, as `read_choice` returns those."""
    command = read_yaml(CONFIGS / "pretrain.yaml")
    chosen = [entry for entry in command["defaults"] if isinstance(entry, dict)]
    return command["model"], {key.removesuffix("@model"): "" for entry in chosen for key in entry if "@model" in key}


def _loggers() -> dict[str, Node]:
    return {target: node for nodes in _group("logger").nodes.values() for target, node in nodes.items()}


def _shown(value: object) -> str:
    """A value on one line, with everything that a terminal would interpret escaped, shortened if it is long."""
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:100]}..."
