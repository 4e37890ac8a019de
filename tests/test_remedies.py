"""Every setting and command that a message tells the user to add is one that the program takes."""

import ast
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from nmt.cli.arguments import for_hydra
from nmt.cli.compose import configuration
from nmt.cli.settings_class import settings_class
from nmt.config.keys import value_at
from nmt.config.nodes import CONFIGS, Config
from nmt.config.schema import validated
from nmt.errors import Mistake

PACKAGE = Path(__file__).resolve().parents[1] / "nmt"
COMMANDS = sorted(file.stem for file in CONFIGS.glob("*.yaml"))
MESSAGES = {"Mistake", "MissingFile", "CheckFailed", "DamagedExport", "expects", "warning"}
HOLE = "\0"  # a value that the message fills in
SETTING = re.compile(
    r"(?<![\w.@+/%{-])([a-z][a-z_]*(?:[.@][a-z][a-z_]*)*)=(\[[\w./,-]*\]|[\w./,%+\0-]*[\w/%+\0-]|(?=\W|$))"
)
# The choices under which a key exists, if it is not there by default.
CHOICES = [
    [],
    ["search=sampling"],
    ["model=luong"],
    ["schedule=late_halving"],
    ["context=hierarchical"],
    ["scorer=location"],
]
# These belong to an example, to another program, or to a class of Python.
NOT_SETTINGS = {"key", "key.part", "group", "byte_fallback", "version", "w", "num_heads"}


def text_of(node: ast.expr) -> str:
    """A message as it is written, with a hole for each value that is filled in."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(text_of(part) if isinstance(part, ast.Constant) else HOLE for part in node.values)
    return ""


def all_messages() -> Iterator[str]:
    for file in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) in MESSAGES:
                yield from (text_of(argument) for argument in node.args)


messages = [*all_messages()]
SETTINGS = sorted(
    {(key, value) for text in messages for key, value in SETTING.findall(text) if key not in NOT_SETTINGS}
)
TYPED = sorted({line for text in messages for line in re.findall(r"python -m nmt\.(\w+ [^'\n.;]*[^'\n.;) ])", text)})


def refusal(command: str, arguments: list[str], key: str) -> str:
    """Why a command refuses a setting; '' if it takes it. What the command lacks besides does not count."""
    try:
        config = configuration(command, arguments)
        config = {name: "x" if value == "???" else value for name, value in config.items()}
        validated(settings_class(command), config)
    except Mistake as error:
        message = str(error)
        refused = message.startswith((f"{key} is ", f"{key} must ", "Unknown", "Cannot read", f"'{key}="))
        refused = refused and "is only for" not in message  # it needs another setting beside it
        return message if refused else ""
    return ""


@cache
def composed(command: str, choices: tuple[str, ...]) -> Config | None:
    """A command's configuration with these choices, in which many settings are looked up; None if it has none."""
    try:
        return configuration(command, list(choices))
    except Mistake:
        return None


def test_there_are_messages_with_settings() -> None:
    assert len(SETTINGS) > 100
    assert len(TYPED) >= 3


@pytest.mark.parametrize(("key", "value"), SETTINGS)
def test_every_setting_in_a_message_is_taken_by_a_command(key: str, value: str) -> None:
    reasons = []
    group, _, package = key.partition("@")
    begun = [
        (command, choices, config)
        for command in COMMANDS
        for choices in (CHOICES if command in ("train", "pretrain") else CHOICES[:2])
        if (config := composed(command, tuple(choices))) is not None
    ]
    has_key = [value_at(config, f"{package}.{group}" if package else key, HOLE) != HOLE for _, _, config in begun]
    if HOLE in value or "%" in value or not value:
        assert any(has_key) or (CONFIGS / group).is_dir(), f"No command has the key {key}"
        return
    # Composing takes longest, so the commands that have the key are asked first, and for a choice those that train.
    trains = [(CONFIGS / group).is_dir() and command in ("train", "pretrain") for command, _, _ in begun]
    order = sorted(range(len(begun)), key=lambda number: not (has_key[number] or trains[number]))
    for command, choices, _ in (begun[number] for number in order):
        reason = refusal(command, for_hydra([*choices, f"{key}={value}"], settings_class(command)), key)
        if not reason:
            return
        reasons.append(reason)
    raise AssertionError(f"No command takes {key}={value}: {reasons[:3]}")


@pytest.mark.parametrize("line", TYPED)
def test_every_command_in_a_message_is_one_that_the_program_reads(line: str) -> None:
    command, *arguments = shlex.split(line.replace(HOLE, "ctranslate2" if "format=" in line else "x"))
    if command == "export":
        arguments = [argument.replace("quantization=ctranslate2", "quantization=int8") for argument in arguments]
    arguments = for_hydra(arguments, settings_class(command), "what" if command == "download" else None)
    validated(settings_class(command), configuration(command, arguments))
