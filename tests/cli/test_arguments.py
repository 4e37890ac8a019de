"""Paths and free text reach a command as they were typed."""

import re
from pathlib import Path
from typing import Annotated

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hypothesis import example, given
from hypothesis import strategies as st

from nmt.cli.arguments import TextKind, flags, for_hydra, text_keys
from nmt.cli.settings_class import settings_class
from nmt.config.fields import Keys, Text
from nmt.config.nodes import CONFIGS
from nmt.errors import Mistake

COMMANDS = sorted(file.stem for file in CONFIGS.glob("*.yaml"))
TRAIN = settings_class("train")
PATHS = [
    "runs/thử",
    "run#1",
    "a=b",
    "it's",
    "with space",
    " x ",
    "1.10",
    "1e3",
    "true",
    "null",
    "007",
    "nan",
    "a,b",
    "(x)",
    "{a}",
    "[a",
    "a\\",
    "a\\'b",
    'He said, "", and left',
    "print([''])",
    "'",
    '"',
    "a\nb",
    "C:\\runs",
]


def read(argument: str, *flags: str, command: str = "train") -> object:
    """The value that Hydra reads for an argument."""
    *_, ours = for_hydra([*flags, argument], settings_class(command))
    return OverridesParser.create().parse_override(ours).value()


def test_a_list_without_its_bracket_is_split_at_once() -> None:
    names = [f'"{number}.en"' for number in range(40)]
    with pytest.raises(
        Mistake, match=r"has no closing bracket: quote a list with spaces, as in 'data\.train=\[A, B\]'\."
    ):
        for_hydra([f"data.train=[{','.join(names)}"], TRAIN)


def test_a_folder_with_commas_is_one_element_of_a_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As sweeps name those of their jobs."""
    monkeypatch.chdir(tmp_path)
    first, second = "sweep/model=luong,scorer=dot,seed=1", "sweep/model=luong,scorer=general"
    for folder in (first, second):
        Path(folder).mkdir(parents=True)
    for names in ([first, second], ["a", first, "b,c"], [second, "a,b"]):
        expected = [part for name in names for part in ([name] if Path(name).exists() else name.split(","))]
        assert read(f"data.train=[{','.join(names)}]") == expected


def test_apostrophes_in_several_elements_of_a_sweep_are_no_quotes() -> None:
    assert for_hydra(["-m", "data.train=[it's,b],it's"], TRAIN) == ["-m", r"data.train=['it\'s',b],'it\'s'"]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    ("command", "key"), [("train", "run_dir"), ("train", "+data.news"), ("export_attention", "input")]
)
def test_a_path_is_what_was_typed(command: str, key: str, path: str) -> None:
    expected = None if (key, path) == ("+data.news", "null") else path
    assert read(f"{key}={path}", command=command) == expected


@given(
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1).filter(
        lambda text: text[0] not in "['\""
    )
)
@example("x'\\")
def test_any_text_is_what_was_typed(text: str) -> None:
    assert read(f"run_dir={text}") == text


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("data.train=[a,b]", ["a", "b"]),
        ("data.train=[]", []),
        ("data.train=[dữ_liệu/a, it's ,1.10,null]", ["dữ_liệu/a", "it's", "1.10", "null"]),
        ("data.train=[\"x, y\",'z]']", ["x, y", "z]"]),
        ("data.test=null", None),
        ("start_from=null", None),
        ("run_dir='[a]'", "[a]"),
        ('run_dir="a b"', "a b"),
        ("run_dir=runs/${seed}", "runs/${seed}"),
        ("seed=1.10", 1.1),
        ("data.concat_prob=0.5", 0.5),
        ("data.tokenized=true", True),
        ("trainer.max_time=00:01:00:00", "00:01:00:00"),
    ],
)
def test_lists_null_quotes_and_other_keys_stay_what_they_were(argument: str, value: object) -> None:
    assert read(argument) == value


@pytest.mark.parametrize(
    ("argument", "values"),
    [
        ("run_dir=a,1.10", ["a", "'1.10'"]),
        ("run_dir='a,b',c", ["'a,b'", "c"]),
        ("data.train=[a,é],[c]", ["[a,'é']", "[c]"]),
        ("run_dir=choice(a,b)", ["a", "b"]),
    ],
)
def test_commas_separate_the_values_of_a_sweep(argument: str, values: list[str]) -> None:
    _, ours = for_hydra(["-m", argument], TRAIN)
    assert list(OverridesParser.create().parse_override(ours).sweep_string_iterator()) == values


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["run_dir="], "'run_dir=' has no value. Write run_dir=VALUE."),
        (["data.train=a,b"], "'data.train=a,b' has commas. Write a list as 'data.train=[a,b]', or add -m"),
        (["data.train=[a,", "b]"], "'data.train=[a,' has no closing bracket: quote a list with spaces, as in"),
    ],
)
def test_a_text_that_cannot_be_meant_is_refused(arguments: list[str], sentence: str) -> None:
    with pytest.raises(Mistake, match=re.escape(sentence)):
        for_hydra(arguments, TRAIN)


def test_text_keys_are_those_that_the_schema_declares() -> None:
    keys = text_keys(TRAIN)
    assert keys["run_dir"] == TextKind(null=False, list=False)
    assert keys["data.train"] == TextKind(null=False, list=True)
    assert keys["data.test"] == keys["data.*"] == TextKind(null=True, list=False)
    assert keys["seed"] is keys["data.concat_prob"] is keys["model"] is None

    class Own(Keys):
        name: Text
        one_or_none: Annotated[Text | None, "a comment"]
        number: int

    assert text_keys(Own) == {"name": TextKind(False, False), "one_or_none": TextKind(True, False), "number": None}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_path_of_every_command_is_text(command: str) -> None:
    kinds = text_keys(settings_class(command))
    paths = (
        "run_dir run_dirs cache_dir out input target source reference alignment prefixes maps outputs from start_from"
    )
    assert all(kinds[key] is not None for key in kinds if key in paths.split())


def test_words_without_a_key_become_a_list() -> None:
    arguments = ["envi", "out=x", 'https://a/b?c="d"', "--help"]
    download = settings_class("download")
    assert for_hydra(arguments, download, "what") == ['what=["envi","https://a/b?c=\\"d\\""]', "out=x", "--help"]
    with pytest.raises(
        Mistake,
        match=r"^Both 'envi' and what= are given\. Either give all names without a key, or give them all as what=",
    ):
        for_hydra(["envi", "what=iwslt15"], download, "what")


def test_flags_are_those_that_exist() -> None:
    assert flags(["-m", "seed=1", "--cfg=job", "job"]) == {"-m", "--cfg"}
    with pytest.raises(Mistake, match=r"^Unknown option '--seed'\. Write key=value without dashes: seed=VALUE\.$"):
        flags(["--seed", "3"])
    with pytest.raises(Mistake, match=r"^Unknown option '--seed=3'\. Write key=value without dashes: seed=3\.$"):
        flags(["--seed=3"])
