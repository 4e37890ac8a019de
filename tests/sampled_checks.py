"""Compares arguments and results with their annotations, but of each function only in some of its calls in a test.

These are the first three calls, and calls 10, 100 and 1,000. A step of training or of a search calls the same functions
hundreds of times in the same way, and checking all these calls doubles the time of a test. `make soak` checks every
call.
"""

import functools
import inspect
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

from beartype import beartype
from grids import SOAK

# Those of the tests that call functions with such annotations most.
FOLDERS = ("attention", "data", "decoding", "evaluation", "kernels", "maps", "models", "pages", "training")
# A call has two checks: its arguments, and its result.
MOST_CHECKS = 6
LATER_CALLS = (10, 100, 1000)

_checks: Counter[tuple[str, str]] = Counter()
_switched_off: list[Any] = []
_of_inner_functions: dict[tuple[object, ...], Callable[..., Any]] = {}


def checked(function: Callable[..., Any]) -> Callable[..., Any]:
    """Stands for beartype in --jaxtyping-packages; `function` has the name and the annotations of the real one.

    A function in a function is decorated whenever that one is called, in a step of a search for example, and making its
    check takes longer than the step. It has the same check every time, because `function` does nothing but return.
    """
    if "<locals>" not in function.__qualname__:
        return _counted(function)
    annotations = tuple((name, str(annotation)) for name, annotation in function.__annotations__.items())
    known = (function.__module__, function.__qualname__, function.__code__.co_varnames, annotations)
    if known not in _of_inner_functions:
        _of_inner_functions[known] = _counted(function)
    return _of_inner_functions[known]


def _counted(function: Callable[..., Any]) -> Callable[..., Any]:
    check = beartype(function)
    key = function.__module__, function.__qualname__

    @functools.wraps(check)
    def counted(*arguments: Any, **options: Any) -> Any:
        found = check(*arguments, **options)
        _checks[key] += 1
        if _checks[key] == MOST_CHECKS and not SOAK:
            _switch_off(*key)
        return found

    return counted


class _Unchecked:
    """The mark of a function that is not checked: true except at the later calls; jaxtyping asks once for each call."""

    def __init__(self) -> None:
        self.calls = MOST_CHECKS // 2

    def __bool__(self) -> bool:
        self.calls += 1
        return self.calls not in LATER_CALLS


def check_again() -> None:
    """Begins a test: every function is checked again."""
    _checks.clear()
    while _switched_off:
        del _switched_off.pop().__no_type_check__


def _switch_off(module: str, name: str) -> None:
    """Sets the mark of typing.no_type_check, which jaxtyping looks for at each call."""
    found: Any = sys.modules[module]
    for part in name.split("."):
        if part == "<locals>":
            return  # a function in a function, which has no address; it goes on being checked
        found = inspect.getattr_static(found, part, None)
    # Methods of classes, static methods and properties hold their functions.
    function = getattr(found, "__func__", getattr(found, "fget", found))
    if inspect.isfunction(function):  # not if a test has replaced it
        function = inspect.unwrap(function)
        function.__no_type_check__ = _Unchecked()  # type: ignore[attr-defined]
        _switched_off.append(function)
