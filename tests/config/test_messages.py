"""Sentences about values that cannot be used."""

import os
from pathlib import Path
from typing import Any

import pytest

from nmt.config.messages import check_type, unknown
from nmt.files import cache_folder, check_folder, check_writable, existing_file, folder_to_write


def test_the_nearest_choice_is_named_and_a_few_are_listed() -> None:
    few = "Unknown scorer 'dott'. Did you mean 'dot'? There are: additive, dot."
    assert unknown("scorer", "dott", ["dot", "additive"]) == few
    many = [f"scorer{number}" for number in range(20)]
    assert unknown("scorer", "scorer_7", many) == "Unknown scorer 'scorer_7'. Did you mean 'scorer7'?"


def test_without_a_near_choice_all_are_listed() -> None:
    assert unknown("scorer", "xyz", ["dot", "additive"]) == "Unknown scorer 'xyz'. There are: additive, dot."


def test_of_dotted_keys_the_last_part_is_compared_and_private_ones_are_left_out() -> None:
    choices = ["model.dim", "model._target_", "model.cross"]
    near = "Unknown key 'model.dimm'. Did you mean 'model.dim'? There are: model.cross, model.dim."
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
        ("a", ["b"], r"key must be a word, not '\['b'\]'."),
        ([1], "a", r"key must be a list, as in 'key=\[A,B\]', not 'a'."),
        ({"lr": 1.0}, {"lr": "x"}, "key.lr must be a number, not 'x'."),
        ({"lr": 1.0}, {"rl": 1.0}, "Unknown key 'key.rl'. Did you mean 'key.lr'?"),
    ],
)
def test_values_of_another_type_are_refused(default: Any, value: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message.replace("?", r"\?")):
        check_type("key", default, value)


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"input is .*, which is a folder; give a file"):
        existing_file("input", tmp_path)


def test_a_folder_that_cannot_be_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for free in (tmp_path, tmp_path / "new", tmp_path / "new" / "more"):
        check_folder("out", free)
    for taken in (tmp_path / "file", tmp_path / "file" / "more"):
        with pytest.raises(ValueError, match=r"^out is .*file.*, but .*file is a file; give another folder\.$"):
            check_folder("out", taken)


def test_a_folder_that_may_not_be_written_to_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = tmp_path / "taken"
    taken.mkdir()
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != taken)  # root may write everywhere
    for free in (tmp_path, tmp_path / "new" / "more"):
        check_writable("out", free)
    for path in (taken, taken / "new" / "more"):
        with pytest.raises(
            ValueError, match=rf"^out is {path}, and {taken} may not be written to; give another folder"
        ):
            check_writable("out", path)
    with pytest.raises(ValueError, match=rf"^out is {taken}, and {taken} may not be written to"):
        folder_to_write("out", taken)
    assert list(taken.iterdir()) == []


def test_a_file_that_is_not_there_is_named_with_its_key(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"input is .*in\.en, and there is no such file"):
        existing_file("input", tmp_path / "in.en")


def test_a_cache_is_made_and_one_that_is_there_is_taken_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cache_folder(tmp_path / "a" / "b").is_dir()
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert cache_folder(tmp_path) == tmp_path
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match=r"^cache_dir is .*file, which cannot be made a folder \(File exists\); give"):
        cache_folder(tmp_path / "file")
