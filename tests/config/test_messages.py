"""Sentences about values that cannot be used."""

from typing import Any

import pytest

from nmt.config.messages import check_type, unknown


def test_the_nearest_choice_is_named_and_a_few_are_listed() -> None:
    few = "Unknown scorer 'dott'. Did you mean 'dot'? Available: additive, dot."
    assert unknown("scorer", "dott", ["dot", "additive"]) == few
    many = [f"scorer{number}" for number in range(20)]
    assert unknown("scorer", "scorer_7", many) == "Unknown scorer 'scorer_7'. Did you mean 'scorer7'?"


def test_without_a_near_choice_all_are_listed() -> None:
    assert unknown("scorer", "xyz", ["dot", "additive"]) == "Unknown scorer 'xyz'. Available: additive, dot."


def test_of_dotted_keys_the_last_part_is_compared_and_private_ones_are_left_out() -> None:
    choices = ["model.dim", "model._target_", "model.cross"]
    near = "Unknown key 'model.dimm'. Did you mean 'model.dim'? Available: model.cross, model.dim."
    assert unknown("key", "model.dimm", choices) == near
    assert "_target_" not in unknown("key", "model.xxxxxx", choices)


@pytest.mark.parametrize(
    ("default", "value"),
    [
        (1, 2),
        (1.5, 2),
        (1.5, 2.5),
        (True, False),
        ("a", "b"),
        ("a", 2024),
        (None, [1]),
        ("???", 3),
        ([1], ["a"]),
        ({"a": 1}, {"a": 2}),
    ],
)
def test_values_of_the_default_s_type_pass(default: Any, value: Any) -> None:
    check_type("key", default, value)


@pytest.mark.parametrize(
    ("default", "value", "message"),
    [
        (1, "abc", "key must be a whole number, not 'abc'."),
        (1, 1.5, "key must be a whole number, not '1.5'."),
        (1, True, "key must be a whole number, not 'true'."),
        (1, None, "key must be a whole number, not 'null'."),
        (1.5, "fast", "key must be a number, not 'fast'."),
        (True, 1, "key must be true or false, not '1'."),
        ("a", ["b"], r"key must be text, not '\['b'\]'."),
        ([1], "a", r"key must be a list, as in 'key=\[A,B\]', not 'a'."),
        ({"lr": 1.0}, {"lr": "x"}, "key.lr must be a number, not 'x'."),
        ({"lr": 1.0}, {"rl": 1.0}, "Unknown key 'key.rl'. Did you mean 'key.lr'?"),
    ],
)
def test_values_of_another_type_are_refused(default: Any, value: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message.replace("?", r"\?")):
        check_type("key", default, value)
