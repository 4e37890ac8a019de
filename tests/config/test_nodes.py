"""How a YAML node becomes an object, and which of its errors are the user's."""

from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel, field_validator

from nmt.cli.compose import choices_and_values
from nmt.cli.overrides import parsed
from nmt.config.nodes import CONFIGS, default_node, make
from nmt.config.schema import validated
from nmt.decoding.binding import Algorithm
from nmt.errors import Mistake


class Part:
    def __init__(self, width: int, inner: Any = None) -> None:
        if width < 0:
            raise KeyError("a bug")
        self.width, self.inner = width, inner


def part(**arguments: Any) -> dict[str, Any]:
    return {"_target_": f"{__name__}.Part", **arguments}


def test_a_node_and_the_nodes_inside_it_become_objects() -> None:
    whole = make(part(inner=[part(width=2)]), width=3)
    assert (whole.width, whole.inner[0].width) == (3, 2)
    assert make(part(_partial_=True))(5).width == 5


@pytest.mark.parametrize(
    ("node", "message"),
    [
        (part(width=1, innner=2), r"^Unknown argument of .*\.Part 'innner'\. Did you mean 'inner'\? Available: "),
        (part(_partial_=True, depth=2), r"^Unknown argument of .*\.Part 'depth'"),
        (part(width=1, inner=part(depth=2)), r"^Unknown argument of .*\.Part 'depth'"),
        (part(), r"\.Part needs the argument 'width'; add it to the node with this _target_\.$"),
        (part(width=1, inner=[part()]), r"\.Part needs the argument 'width'"),
        (
            part(width=1, inner=[["${oc.create:{_target_: os.getcwd}}"]]),
            r"Part has the value '\$.*', an interpolation or a",
        ),
        ({"_target_": "torch.optim.Nope"}, r"^Error loading 'torch\.optim\.Nope'\. Check the value of _target_\.$"),
        ({"_target_": "nowhere.Part"}, r"^Error loading 'nowhere\.Part'\. Check the value of _target_\.$"),
        (part(width=1, _args_=[2]), r"\.Part: the key _args_ is not allowed in a node; remove it\.$"),
        (part(width=1, inner=part(width=1, _convert_="all")), r"\.Part\.inner: the key _convert_ is not allowed in a"),
        (part(width=1, inner=[{"a": {"_recursive_": True}}]), r"\.Part\.inner\.a: the key _recursive_ is not allowed"),
        (part(width=1, _partial_=7), r"\.Part\._partial_ is 7; it must be true or false\.$"),
        ({"_target_": "torch.pi"}, r"^Error loading 'torch\.pi'\. Check the value of _target_\.$"),
    ],
)
def test_a_node_that_does_not_fit_its_constructor_is_a_mistake(node: dict[str, Any], message: str) -> None:
    with pytest.raises(Mistake, match=message):
        make(node)


@pytest.mark.parametrize("node", [part(width=1), part(_partial_=True)])
def test_a_node_makes_what_its_place_needs(node: dict[str, Any]) -> None:
    make(node, Part)
    with pytest.raises(
        Mistake, match=r"\.Part does not make a BaseModel, which is needed here; choose another _target_\.$"
    ):
        make(node, BaseModel)
    with pytest.raises(Mistake, match=r"does not make an Algorithm, which"):
        make(node, Algorithm)


@pytest.mark.parametrize("call", [lambda: make(part(width=-1)), lambda: make(part(_partial_=True))(-1)])
def test_an_error_in_a_constructor_is_raised_unchanged(call: Callable[[], Any]) -> None:
    with pytest.raises(KeyError, match="a bug") as bug:
        call()
    assert bug.traceback[-1].name == "__init__"


class Checked(BaseModel):
    size: int

    @field_validator("size")
    @classmethod
    def check_size(cls, size: int) -> int:
        if size < 0:
            raise Mistake(f"size is {size}; it must be at least 0.")
        number, _ = [size]
        return number


def test_a_bug_in_a_check_of_the_settings_is_no_mistake_of_the_user() -> None:
    """pydantic catches every ValueError of a check."""
    with pytest.raises(Mistake, match=r"^size is -1; it must be at least 0\.$"):
        validated(Checked, {"size": -1})  # type: ignore[type-var]
    with pytest.raises(ValueError, match="not enough values to unpack") as bug:
        validated(Checked, {"size": 1})  # type: ignore[type-var]
    assert not isinstance(bug.value, Mistake)


@pytest.mark.parametrize("group", ["model", "scorer", "window", "normalizer", "encoder", "decoder", "norm"])
def test_the_default_node_of_a_choice_is_the_one_that_hydra_composes(group: str) -> None:
    """The remedies of start_from are written from these nodes, which are read without Hydra."""
    where = {"encoder": "luong", "decoder": "luong", "norm": "transformer"}
    for file in (CONFIGS / group).glob("*.yaml"):
        if group in where:
            _, composed = choices_and_values(
                "train", parsed("train", [f"model={where[group]}", f"{group}@model={file.stem}"])
            )
            node = composed["model"][group]
        else:
            _, composed = choices_and_values("train", parsed("train", [f"{group}={file.stem}"]))
            node = composed[group]
        assert default_node(group, file.stem) == node
