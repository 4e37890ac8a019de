"""--help: the examples of a command, the choices of each group and the keys, as in the YAML files.

Lines are wrapped to the terminal. --help GROUP shows the choices and keys of one group alone.
"""

import re
import shutil
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from nmt.config.keys import value_at
from nmt.config.messages import unknown, written
from nmt.config.nodes import from_yaml
from nmt.errors import SHOW_TRACEBACK, Mistake


def help_text(
    config_folder: Path, name: str, description: str, choices: Mapping[str, str | None], config: Mapping[str, Any]
) -> str:
    """The description, the choices with the head comments of their files, and the keys with their values.

    `choices` gives the choice made in each group, such as 'scorer' or 'scorer@cross'; `config` is the resulting
    configuration.
    """
    text = _text(config_folder, name)
    groups = _groups(text)
    parts = [_fitted(description.strip())]
    if groups:
        sites = [group for group, choice in choices.items() if "@" in group and choice]
        listed = "\n".join(_choices(config_folder, group, choices.get(group)) for group in [*groups, *sites])
        parts.append(f"Choices, written group=choice (* marks the current ones):\n\n{listed}")
    # The part of the YAML between the defaults list and Hydra's own settings.
    keys = text.split("\n\n", maxsplit=1)[1].split("\nhydra:")[0].strip()
    # A comment of several lines is wrapped as a whole.
    keys = re.sub(r"(?m)^ *# .*(?:\n *# .*)+$", lambda lines: re.sub(r"\n *#", "", lines[0]), keys)
    parts.append(
        "Keys, written key=value or key.part=value (??? marks a required key):\n\n" + textwrap.indent(keys, "  ")
    )
    if groups:
        values = "\n".join(f"  {key}={written(value)}" for key, value in _values(text, groups, config))
        parts.append(f"Keys of the choices marked *, and the keys above that these choices change:\n\n{values}")
        parts.append(f"--help GROUP, such as --help {groups[0]}, shows the choices and keys of one group.")
    parts.append(f"Set {SHOW_TRACEBACK}=1 to see the traceback of a mistake too.")
    return _wrapped("\n\n".join(parts))


def group_help(
    config_folder: Path, name: str, group: str, choices: Mapping[str, str | None], config: Mapping[str, Any]
) -> str:
    """The choices of one group and the keys of the current one, or the keys of one part of the configuration.

    Raises Mistake if the command has no such group or part.
    """
    text = _text(config_folder, name)
    sites = [choice for choice in choices if "@" in choice]
    parts = [key for key, value in from_yaml(text).items() if isinstance(value, dict) and key != "hydra"]
    available = list(dict.fromkeys([*_groups(text), *sites, *parts]))
    if group not in available:
        raise Mistake(unknown("group", group, available))
    shown = []
    if group not in parts:
        shown.append(f"Choices (* marks the current one):\n\n{_choices(config_folder, group, choices.get(group))}")
    base, _, site = group.partition("@")
    key = f"{site}.{base}".removeprefix("_global_.").strip(".")
    comments = _comments(config_folder, name, base, choices.get(group))
    values = [
        f"  {leaf}={written(value)}  # {comment}"
        if (comment := comments.get(leaf.rpartition(".")[2]))
        else f"  {leaf}={written(value)}"
        for leaf, value in _plain_values(key, value_at(config, key) or {}, inside=True)
    ]
    if values:
        shown.append("Keys, with their current values:\n\n" + "\n".join(values))
    elif group not in parts:
        shown.append("The current choice has no keys.")
    if group not in parts:
        shown.append(f"{group}=CHOICE --help {group} shows the keys of another choice.")
    return _wrapped("\n\n".join(shown))


def _comments(config_folder: Path, name: str, group: str, choice: str | None) -> dict[str, str]:
    """The comments of the keys in the file of a choice, or in the part of the command's file with that name."""
    file = config_folder / group / f"{choice}.yaml"
    if file.is_file():
        text = file.read_text(encoding="utf-8")
    else:
        text = _text(config_folder, name).partition(f"\n{group}:")[2]
        text = re.split(r"\n(?=\S)", text, maxsplit=1)[0]
    return dict(re.findall(r"^ *(\w+):[^#\n]*# (.*)$", text, re.MULTILINE))


def _wrapped(text: str) -> str:
    """The text with lines that fit the terminal. A continued comment remains one, so the keys remain YAML."""
    width = shutil.get_terminal_size((120, 1)).columns
    lines = []
    for line in text.split("\n"):
        if len(line) <= width:
            lines.append(line)
            continue
        before, mark, comment = re.match(r"(.*?)(?:( +# )(.*))?$", line).groups("")  # type: ignore[union-attr]
        # The second column of a list, or the comment; else a deeper indentation.
        column = re.match(r" *\S.*? {2,}(?=\S)", line)
        indent = len(line) - len(line.lstrip(" "))
        indent = column.end() if column else indent + 4 * bool(indent)
        if indent > width - 30:
            indent = 6
        if mark and len(before) + 2 > width - 30:  # no room beside the value
            lines.append(before)
            line = f"      # {comment}"
            indent = 6
        elif mark:
            indent = len(before) + len(mark) - 2
        lines += textwrap.wrap(
            line,
            width,
            subsequent_indent=" " * indent + "# " * bool(mark),
            break_long_words=False,
            break_on_hyphens=False,
        )
    return "\n".join(lines)


def _fitted(description: str) -> str:
    """The description with each paragraph of prose on one line, and paragraphs of examples indented by two spaces.

    In some docstrings the code formatter removes the indent. If an example is wider than the terminal, the description
    of each example goes on the line below it.
    """
    width = shutil.get_terminal_size((120, 1)).columns
    paragraphs = description.split("\n\n")
    for index, paragraph in enumerate(paragraphs):
        if not paragraph.lstrip().startswith("python -m "):
            paragraphs[index] = " ".join(paragraph.split("\n"))
            continue
        examples = textwrap.indent(textwrap.dedent(paragraph), "  ")
        if any(len(line) > width for line in examples.split("\n")):
            # Two columns, or the second one alone below a command that fills the line.
            examples = re.sub(r"(?m)^(  \S.*?) {2,}(?=\S)", r"\1\n      ", examples)
            examples = re.sub(r"(?m)^ {7,}(?=\S)", "      ", examples)
        paragraphs[index] = examples
    return "\n\n".join(paragraphs)


def _text(config_folder: Path, name: str) -> str:
    """The YAML of a command. If it extends the YAML of another command, its own keys come first."""
    text = (config_folder / f"{name}.yaml").read_text(encoding="utf-8")
    extended = [entry for entry in from_yaml(text)["defaults"] if entry != "_self_" and isinstance(entry, str)]
    if not extended:
        return text
    head, body = _text(config_folder, extended[0]).split("\n\n", maxsplit=1)
    added_keys = text.split("\n\n", maxsplit=1)[1].rstrip()
    return f"{head}\n\n{added_keys}\n\n{body}"


def _groups(text: str) -> list[str]:
    """The groups of a command, in the order of its file."""
    entries = from_yaml(text)["defaults"]
    names = [next(iter(entry)) for entry in entries if isinstance(entry, dict)]
    return [name for name in names if not name.startswith("override ") and "@" not in name]


def _choices(config_folder: Path, group: str, chosen: str | None) -> str:
    """A group and its choices, each with its description."""
    files = sorted((config_folder / group.partition("@")[0]).glob("*.yaml"))
    margin = max(len(file.stem) for file in files) + 6
    columns = max(shutil.get_terminal_size((120, 1)).columns, margin + 40)
    lines = [f"{group}="]
    for file in files:
        start = f"  {'*' if file.stem == chosen else ' '} {file.stem}".ljust(margin)
        lines += textwrap.wrap(
            _description(file),
            columns,
            initial_indent=start,
            subsequent_indent=" " * margin,
            break_long_words=False,
            break_on_hyphens=False,
        )
    return "\n".join(lines)


def _description(file: Path) -> str:
    """The first paragraph of the file's head comment, and the choices that the file makes in other groups."""
    text = file.read_text(encoding="utf-8").replace("# @package _global_\n", "", 1)
    head = re.match(r"(?:#.*\S.*\n)*", text)
    comment = " ".join(line.strip("# ") for line in (head[0] if head else "").split("\n"))
    overrides = re.findall(r"^ *- override /([\w@]+?)(?:@_global_\S*)?: (\w+)", text, re.MULTILINE)
    brings = ", ".join(f"{group}={choice}" for group, choice in dict(overrides).items())
    return f"{comment} (chooses {brings})" if brings else comment


def _values(text: str, groups: list[str], config: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The keys of all groups, and other keys whose values differ from those in the command's file."""
    for group in groups:
        yield from _plain_values(group, config.get(group, {}), inside=True)
    outside = {key: value for key, value in from_yaml(text).items() if key not in ("defaults", "hydra", *groups)}
    # An experiment, for example, changes keys outside the groups, and the file above shows only their usual values.
    in_file = dict(leaf for key, value in outside.items() for leaf in _plain_values(key, value))
    for key in outside:
        yield from ((leaf, value) for leaf, value in _plain_values(key, config[key]) if in_file.get(leaf) != value)


def _plain_values(key: str, value: Any, inside: bool = False) -> Iterator[tuple[str, Any]]:
    """The dotted keys inside a value, with their values. Skips objects (with `_target_`) unless `inside` is true."""
    if not isinstance(value, dict):
        yield key, value
    elif "_target_" not in value or inside:
        for name in value:
            if not name.startswith("_"):
                yield from _plain_values(f"{key}.{name}", value[name])
