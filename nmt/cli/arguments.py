"""What stands on a command line, before Hydra reads it."""

import re
from collections.abc import Sequence

_OVERRIDE = re.compile(r"[\w.@/+~]+=")


def is_sweep(arguments: Sequence[str]) -> bool:
    """Whether several jobs are asked for."""
    return bool({"-m", "--multirun"} & set(arguments))


def single_values(arguments: Sequence[str]) -> list[str]:
    """The arguments key=value, but for those with several values, one for each job of a sweep."""
    several = is_sweep(arguments)
    return [each for each in arguments if _OVERRIDE.match(each) and not (several and "," in each)]


def gathered(arguments: list[str], key: str) -> list[str]:
    """The arguments, those that are no key=value as one list under a key; an address may have = in it.

    Raises ValueError when the key is given too.
    """
    words = [
        each for each in arguments if not each.startswith("-") and ("=" not in each or "://" in each.split("=")[0])
    ]
    quoted = ['"' + word.replace("\\", "\\\\").replace('"', '\\"') + '"' for word in words]
    others = [each for each in arguments if each not in words]
    if words and any(each.startswith(f"{key}=") for each in others):
        raise ValueError(f"'{words[0]}' and {key}= are given: write all names as words, or all in {key}=[A,B].")
    return [f"{key}=[{','.join(quoted)}]", *others] if words else others
