"""Rewrites the arguments of a command so that Hydra reads them as the user meant them.

Paths and free text are taken literally: Hydra would read run_dir=1.10 as a number and reject input=dữ_liệu/a.en.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, get_args, get_origin, get_type_hints

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Quote, QuotedString
from hydra.errors import HydraException
from pydantic import BaseModel

from nmt.config.fields import Keys, TextKey
from nmt.errors import Mistake

SWEEP = frozenset({"-m", "--multirun"})
HELP = frozenset({"-h", "--help"})
VERSION = "--version"
_CONFIGURATION, _INFORMATION = ("-c", "--cfg"), ("-i", "--info")
_PACKAGE, _RESOLVE = ("-p", "--package"), "--resolve"
_HYDRA_HELP = "--hydra-help"
INSPECT = frozenset({*_CONFIGURATION, *_INFORMATION, *_PACKAGE, _RESOLVE, _HYDRA_HELP})
"""Flags that make Hydra itself print the configuration, or information about it."""
_SHOWN = {
    **dict.fromkeys(_CONFIGURATION, ("the configuration", ("job", "hydra", "all"))),
    **dict.fromkeys(
        _INFORMATION,
        (
            "how the configuration is put together",
            ("all", "config", "defaults", "defaults-tree", "plugins", "searchpath"),
        ),
    ),
}

_OVERRIDE = re.compile(r"(\+{0,2})([\w.]+)=(.*)", re.DOTALL)
_QUOTED = r"""(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')"""
# A list whose quotes enclose text, or else one whose quotes are apostrophes. The first part never backtracks: without
# the closing bracket it would take exponential time.
_LIST = rf"\[(?>{_QUOTED}|[^\[\]])*+\]|\[[^\[\]]*\]"
# An element of a list or of a sweep: quoted text, a list, or anything up to the next comma.
_ELEMENT = re.compile(rf"\s*({_QUOTED}|{_LIST}|[^,]*?)\s*(?:,|$)", re.DOTALL)
_MOST_COMMAS = 16
"""In a name of a file or folder within a list."""
_FUNCTION = re.compile(r"\w+\(.*\)", re.DOTALL)


def flags(arguments: Sequence[str]) -> set[str]:
    """The arguments that begin with a dash, without their values. Raises Mistake for an unknown flag."""
    options = {argument.partition("=")[0]: argument for argument in arguments if argument.startswith("-")}
    for flag, argument in options.items():
        if flag not in SWEEP | HELP | INSPECT | {VERSION}:
            key, _, value = argument.lstrip("-").partition("=")
            if not key:
                raise Mistake(f"Unknown option '{argument}'. Leave it out: write key=value.")
            raise Mistake(f"Unknown option '{argument}'. Write key=value without dashes: {key}={value or 'VALUE'}.")
    return set(options)


def inspection(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """The flags in INSPECT, each with its value, and the other arguments, of a command that only shows something.

    Hydra's own parser would refuse flags between other arguments. Raises Mistake for a flag without a value that it
    takes, and for flags that exclude each other.
    """
    shown, others, rest = dict[str, str | None](), list[str](), list(arguments)
    while rest:
        flag, equals, value = (argument := rest.pop(0)).partition("=")
        if not argument.startswith("-"):
            others.append(argument)
        elif flag in _SHOWN:
            action, values = _SHOWN[flag]
            value = value if equals else rest.pop(0) if rest[:1] and rest[0] in values else ""
            if not equals and flag in _INFORMATION:
                value = value or "all"
            if value not in values:
                choices = [f"{flag} {choice}" for choice in values]
                raise Mistake(f"{flag} shows {action}: write {', '.join(choices[:-1])} or {choices[-1]}.")
            shown[flag] = value
        elif flag in _PACKAGE:
            if not equals and rest and not rest[0].startswith("-") and "=" not in rest[0]:
                value = rest.pop(0)
            if not value:
                raise Mistake(f"{flag} shows a part of the configuration: write {flag} KEY, as in {flag} model.")
            shown[flag] = value
        else:
            shown[flag] = None
    if _HYDRA_HELP in shown:
        return [_HYDRA_HELP], []
    exclusive = [flag for flag in shown if flag in _SHOWN or flag in SWEEP]
    if len(exclusive) > 1:
        raise Mistake(f"Choose one of {' and '.join(exclusive)}.")
    if (_RESOLVE in shown or set(_PACKAGE) & set(shown)) and not set(_CONFIGURATION) & set(shown):
        raise Mistake("-p and --resolve change what --cfg shows: add --cfg job.")
    return [word for flag, value in shown.items() for word in (flag, value) if word is not None], others


class TextKind(NamedTuple):
    """Whether the value of a text key may also be null or a list."""

    null: bool
    list: bool


def for_hydra(arguments: Sequence[str], settings: type[Keys], words: str | None = None) -> list[str]:
    """The arguments, with text quoted where Hydra would not read it as typed.

    A value in brackets is a list, and with -m, commas separate the values of a sweep. Quotes around a value prevent
    both. A comma in a text key that takes a list must belong to the name of an existing file or folder. null is
    text too, unless the key may be null. Arguments without a key become a list under the key `words`. Raises
    Mistake for a text key without a value, and if the key `words` is given alongside arguments without a key.
    """
    kinds, sweep = text_keys(settings), bool(SWEEP & set(arguments))
    return [_for_hydra(argument, kinds, sweep) for argument in _gathered(arguments, words)]


def text_keys(settings: type[BaseModel], prefix: str = "") -> dict[str, TextKind | None]:
    """The kind of text that each dotted key takes, None if it takes no text. '*' stands for keys that users may add."""
    kinds: dict[str, TextKind | None] = {}
    fields = {field.alias or name: (field.annotation, field.metadata) for name, field in settings.model_fields.items()}
    if settings.model_config.get("extra") == "allow":
        fields["*"] = (get_type_hints(settings, include_extras=True)["__pydantic_extra__"], [])
    for key, (annotation, metadata) in fields.items():
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            kinds |= text_keys(annotation, f"{prefix}{key}.")
        parts = [*_parts(annotation), *metadata]
        text = any(isinstance(part, TextKey) for part in parts)
        lists = any(get_origin(part) is list for part in parts)
        kinds[f"{prefix}{key}"] = TextKind(type(None) in parts, lists) if text else None
    return kinds


def _parts(annotation: Any) -> Iterator[Any]:
    """A type and, recursively, the types and annotations inside it."""
    yield annotation
    for part in get_args(annotation):
        yield from _parts(part)


def _gathered(arguments: Sequence[str], key: str | None) -> list[str]:
    """The arguments, with those that are not key=value collected under `key`; an address may contain '='."""
    if key is None:
        return list(arguments)
    words = [word for word in arguments if not word.startswith("-") and "=" not in word.partition("://")[0]]
    others = [argument for argument in arguments if argument not in words]
    if not words:
        return others
    if any(argument.startswith(f"{key}=") for argument in others):
        raise Mistake(
            f"Both '{words[0]}' and {key}= are given. Either give all names without a key, or give them all as "
            f"{key}=[A,B]."
        )
    return [f"{key}=[{','.join(QuotedString(word, Quote.double).with_quotes() for word in words)}]", *others]


def _for_hydra(argument: str, kinds: Mapping[str, TextKind | None], sweep: bool) -> str:
    override = _OVERRIDE.fullmatch(argument)
    if override is None:
        return argument
    plus, key, value = override.groups()
    # '*' is for keys that users may add, such as a test split under data.
    kind = kinds.get(key) if key in kinds else kinds.get(f"{key.rpartition('.')[0]}.*")
    if kind is None or (sweep and _FUNCTION.fullmatch(value)):  # choice(A,B) and the like
        return argument
    if not value:
        raise Mistake(f"'{argument}' has no value. Write {key}=VALUE.")
    elements = _elements(value)
    if any(map(_is_empty_text, elements if sweep else [value])):
        raise Mistake(f"'{argument}' has an empty text. Write a value, or leave the key out.")
    if sweep:
        return f"{plus}{key}={','.join(_value(element, kind.null) for element in elements)}"
    if kind.list and value.startswith("[") and not value.endswith("]") and not os.path.lexists(value):
        raise Mistake(f"'{argument}' has no closing bracket: quote a list with spaces, as in '{key}=[A, B]'.")
    if kind.list and len(elements) > 1 and not os.path.lexists(value):  # a file may have a comma in its name
        raise Mistake(
            f"'{argument}' has commas. Write a list as '{key}=[{value}]', or add -m to run a job for each value."
        )
    return f"{plus}{key}={_value(value, kind.null)}"


def _is_empty_text(value: str) -> bool:
    """Whether a value is an empty text in quotes, or a list that contains one."""
    if value.startswith("[") and value.endswith("]"):
        return any(map(_is_empty_text, _elements(value[1:-1])))
    return value in ("''", '""')


def _value(value: str, nullable: bool) -> str:
    if re.fullmatch(_QUOTED, value, re.DOTALL) or (nullable and value == "null"):
        return value
    if value.startswith("[") and value.endswith("]"):
        return f"[{','.join(_value(element, False) for element in _names(_elements(value[1:-1])))}]"
    try:
        # Hydra itself says whether it would change the text: 1.10 is read as 1.1.
        as_typed = OverridesParser.create().parse_override(f"key={value}").value() == value
    except (HydraException, ValueError):  # Python reads no numbers of more than 4,300 digits
        as_typed = False
    return value if as_typed else QuotedString(value, Quote.single).with_quotes()


def _names(elements: Sequence[str]) -> list[str]:
    """The elements of a list; those that are together the name of an existing file or folder with commas are one.

    Such a folder is that of a sweep's job: runs/sweeps/NAME/model=luong,scorer=dot.
    """
    names, start = list[str](), 0
    while start < len(elements):
        end = start + 1
        if not os.path.lexists(elements[start]):
            ends = range(min(start + _MOST_COMMAS + 1, len(elements)), start + 1, -1)
            end = next((end for end in ends if os.path.lexists(",".join(elements[start:end]))), end)
        names.append(",".join(elements[start:end]))
        start = end
    return names


def _elements(text: str) -> list[str]:
    """Splits a text at its commas, except those inside quotes or lists."""
    elements, end = [], 0
    while end < len(text) and (element := _ELEMENT.match(text, end)):
        elements.append(element[1])
        end = element.end()
    return [*elements, ""] if text.endswith(",") else elements
