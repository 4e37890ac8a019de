"""Error messages for configurations: the value, what was expected, and the closest name that exists."""

import difflib
import re
from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel, ValidationError

from nmt.errors import Mistake

_KINDS = {
    "bool": "true or false",
    "int": "a whole number",
    "float": "a number",
    "string": "text",
    "list": "a list",
    "dict": "a group of settings",
    "model": "a group of settings",
}
# If there are at most this many names, all of them are listed, even if one is a close match.
_FEW = 12


def unknown(kind: str, name: str, choices: Iterable[str]) -> str:
    """The message for a name that does not exist: the closest choice, and all choices if few exist or none is close."""
    name = _shortened(name)
    # Dotted keys are compared by their last part. Parts such as _target_ are not meant for the command line.
    parts = {choice.rpartition(".")[2]: choice for choice in sorted(choices)}
    parts = {part: choice for part, choice in parts.items() if not part.startswith("_")}
    if not parts and "." in name:
        return f"Unknown {kind} '{name}'. {name.rpartition('.')[0]} has no further keys; --help lists its choices."
    near = difflib.get_close_matches(name.rpartition(".")[2], parts, n=1, cutoff=0.5)
    remedies = [f"Did you mean '{parts[near[0]]}'?"] if near else []
    if not near or len(parts) <= _FEW:
        remedies.append(f"Available: {', '.join(parts.values())}.")
    return " ".join([f"Unknown {kind} '{name}'.", *remedies])


class MissingKeys(Mistake):
    """A configuration lacks keys; `lacking` is the part of the message that says which, without the remedy."""

    def __init__(self, message: str, lacking: str = "") -> None:
        super().__init__(message)
        self.lacking = lacking


def missing(keys: Iterable[str]) -> MissingKeys:
    """The error for keys without a value."""
    *others, last = keys
    names = f"{', '.join(others)} and {last} are" if others else f"{last} is"
    remedy = f"Add {' '.join(f'{key}=VALUE' for key in (*others, last))} to the command."
    if last in ("run_dir", "run_dirs"):
        remedy += " A run is the folder that training printed, or an included model: en-vi or vi-en."
    if last == "data.valid":
        remedy += " To split a corpus, run python -m nmt.prepare split.corpus=PREFIX."
    return MissingKeys(f"{names} missing. {remedy}", lacking=f"{names} missing.")


def stored_invalid(error: Mistake) -> str:
    """The message for a stored configuration: a key that it lacks cannot be added to the command that reads it."""
    if isinstance(error, MissingKeys):
        return f"{error.lacking} Another version of nmt wrote it: train the run again."
    return str(error)


def invalid(error: ValidationError, kind: type[BaseModel], group: str = "") -> Mistake:
    """The error for the first value that pydantic rejected; `group` is the dotted key of the validated node."""
    first = error.errors()[0]
    # Without the positions in lists: the message names the key of the whole list.
    path = [part for part in first["loc"] if isinstance(part, str)]
    key, value = ".".join([group] * bool(group) + path), first["input"]
    match first["type"]:
        case "value_error":  # from one of our own checks, whose message names the keys
            if not isinstance(refusal := first["ctx"]["error"], Mistake):  # a bug in a check, which pydantic caught
                raise refusal
            return refusal
        case "expectation":
            return Mistake(f"{key} is {_shortened(written(value))}; {first['msg']}.")
        case "extra_forbidden":
            parent = key.removesuffix(path[-1])
            return Mistake(unknown("key", key, [f"{parent}{name}" for name in _names(kind, path[:-1])]))
        case "missing":
            return missing([key])
        case "literal_error":
            # pydantic gives the choices of a Literal only as text: 'a', 'b' or 'c'.
            choices = re.findall(r"'([^']+)'", first["ctx"]["expected"])
            return Mistake(unknown(key, _shortened(written(value)), choices))
        case code:
            wanted = _kind(code) or first["msg"]
            example = f", as in '{key}=[A,B]'" if code == "list_type" else ""
            choose = "; --help shows how to choose another" if code in ("model_type", "dict_type") else ""
            return Mistake(f"{key} must be {wanted}{example}, not '{_shortened(written(value))}'{choose}.")


def written(value: Any) -> str:
    """A value as it is written in YAML."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return str(value)


def _kind(code: str) -> str | None:
    """The kind of value that pydantic expected, from the code of its error; None if the kind was right."""
    return _KINDS.get(code.removesuffix("_type").removesuffix("_parsing"))


def _shortened(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:200]}..."


def _names(kind: type[BaseModel], path: Iterable[str]) -> list[str]:
    """The keys of the group at `path` inside a configuration."""
    for name in path:
        kind = next(field.annotation for key, field in kind.model_fields.items() if (field.alias or key) == name)  # type: ignore[assignment]
    return [field.alias or key for key, field in kind.model_fields.items()]


def expected(error: ValidationError) -> str:
    """What the first value that pydantic rejected must be, for a file that is not the user's."""
    first = error.errors(include_input=False)[0]
    key = ".".join(str(part) for part in first["loc"] if "[" not in str(part))  # without the tags of a union
    code = first["type"]
    if code == "missing":
        return f"{key} is missing"
    if code == "finite_number" or code.startswith(("greater_than", "less_than")):
        return f"{key} is out of range"
    if code == "literal_error":
        return f"{key} must be {first['ctx']['expected']}"
    if wanted := "an object" if code in ("dict_type", "model_type") else _kind(code):
        return f"{key} must be {wanted}"
    return f"{key}: {first['msg']}"
