"""The annotations of types and sizes are checked in this folder; see check_annotations in tests/common_fixtures.py."""

import inspect
from collections.abc import Callable
from pathlib import Path

import pytest
import sampled_checks
import torch
from grids import SOAK
from jaxtyping import TypeCheckError, jaxtyped

from nmt.attention.masks import lengths_to_mask
from nmt.attention.scorers import General

FLOATS = torch.tensor([1.0, 2.0])
CHECKOUT = Path(__file__).resolve().parents[2]


def test_every_module_with_sizes_in_its_annotations_is_checked(pytestconfig: pytest.Config) -> None:
    checked = tuple(f"{name}." for name in pytestconfig.getoption("jaxtyping_packages").split(","))
    files = [file for file in (CHECKOUT / "nmt").rglob("*.py") if "from jaxtyping" in file.read_text(encoding="utf-8")]
    modules = [".".join((*file.relative_to(CHECKOUT).with_suffix("").parts, "")) for file in files]
    assert len(modules) > 50
    assert [module for module in modules if not module.startswith(checked)] == []


def test_what_contradicts_its_annotation_is_an_error() -> None:
    with pytest.raises(TypeCheckError, match="lengths_to_mask"):
        lengths_to_mask(FLOATS, 3)


@pytest.mark.parametrize("test", ["first", "second"])
def test_a_function_is_checked_in_its_first_calls_in_every_test(test: str) -> None:
    for _ in range(sampled_checks.MOST_CHECKS // 2 - 1):
        lengths_to_mask(torch.tensor([1]), 3)
    with pytest.raises(TypeCheckError, match="lengths_to_mask"):
        lengths_to_mask(FLOATS, 3)
    lengths_to_mask(torch.tensor([1]), 3)
    if not SOAK:
        assert lengths_to_mask(FLOATS, 3).tolist() == [[True, False, False], [True, True, False]]
    general = General(2, 2, num_heads=1)
    for _ in range(sampled_checks.MOST_CHECKS // 2):
        assert not hasattr(inspect.unwrap(General.project_keys), "__no_type_check__")
        general.project_keys(torch.ones(1, 1, 3, 2))
    assert hasattr(inspect.unwrap(General.project_keys), "__no_type_check__") != SOAK, "methods too"


@pytest.mark.skipif(SOAK, reason="every call is checked")
def test_some_later_calls_are_checked_too() -> None:
    for _ in range(sampled_checks.MOST_CHECKS // 2):
        lengths_to_mask(torch.tensor([1]), 3)
    refused = []
    for call in range(sampled_checks.MOST_CHECKS // 2 + 1, 1100):
        try:
            lengths_to_mask(FLOATS, 3)
        except TypeCheckError:
            refused.append(call)
    assert refused == [10, 100, 1000]


def inner(annotation: str, result: object) -> Callable[[object], object]:
    """A function in a function, as the import of nmt decorates it."""

    def function(number: object) -> object:
        return result

    function.__annotations__ = {"number": "int", "return": annotation}
    return jaxtyped(function, typechecker=sampled_checks.checked)


def test_functions_in_functions_are_checked_with_their_own_annotations_and_results() -> None:
    assert [inner("int", result)(1) for result in (2, 3)] == [2, 3]
    assert inner("str", "x")(1) == "x"
    for annotation, result, argument in (("int", "x", 1), ("str", 2, 1), ("int", 2, "x")):
        with pytest.raises(TypeCheckError):
            inner(annotation, result)(argument)


@pytest.mark.unchecked
def test_an_unchecked_test_does_without() -> None:
    assert lengths_to_mask(FLOATS, 3).tolist() == [[True, False, False], [True, True, False]]
