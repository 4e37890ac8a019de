"""--help: a command's examples, the choices of each group and its keys, all as the YAML files and Hydra have them."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml


def help_text(
    config_folder: Path, name: str, description: str, choices: Mapping[str, str | None], config: Mapping[str, Any]
) -> str:
    """The description, every choice with the first comment of its file, and the keys with their values.

    `choices` holds what is chosen of each group, 'scorer' or 'scorer@cross', and `config` what that makes.
    """
    text = _text(config_folder, name)
    own = [group for group, choice in choices.items() if "@" in group and choice]
    groups = [_group(config_folder, group, choices[group]) for group in [*_groups(text), *own]]
    parts = [description.strip()]
    if groups:
        parts.append("Choices, written group=choice (* is what is used):\n\n" + "\n".join(groups))
    parts.append("Keys, written key=value or key.part=value:\n\n" + _keys(text))
    if groups:
        chosen = "\n".join(f"  {key}={_written(value)}" for key, value in _values(text, config))
        parts.append("Keys of the choices marked *, and what they change of those above:\n\n" + chosen)
    return "\n\n".join(parts)


def _text(config_folder: Path, name: str) -> str:
    """The YAML of a command. If it extends another command's, its own keys come first in that one's YAML."""
    text = (config_folder / f"{name}.yaml").read_text(encoding="utf-8")
    extended = [entry for entry in yaml.safe_load(text)["defaults"] if entry != "_self_" and isinstance(entry, str)]
    if not extended:
        return text
    head, body = _text(config_folder, extended[0]).split("\n\n", maxsplit=1)
    own = text.split("\n\n", maxsplit=1)[1].rstrip()
    return f"{head}\n\n{own}\n\n{body}"


def _groups(text: str) -> list[str]:
    """The groups of a command, in the order of its file."""
    entries = yaml.safe_load(text)["defaults"]
    names = [next(iter(entry)) for entry in entries if isinstance(entry, dict)]
    return [name for name in names if not name.startswith("override ") and "@" not in name]


def _values(text: str, config: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """The keys of all groups, and others whose value is not the one in the command's file."""
    written = {key: value for key, value in yaml.safe_load(text).items() if key not in ("defaults", "hydra")}
    groups = [part for name in _groups(text) for part in _plain_values(name, config.get(name, {}), whole=True)]
    others = [(key, value) for name in written for key, value in _plain_values(name, config[name])]
    above = dict(leaf for name, value in written.items() for leaf in _plain_values(name, value))
    return [*groups, *((key, value) for key, value in others if above.get(key) != value)]


def _group(config_folder: Path, group: str, choice: str | None) -> str:
    files = sorted((config_folder / group.partition("@")[0]).glob("*.yaml"))
    width = max((len(file.stem) for file in files), default=0)
    lines = [f"  {'*' if file.stem == choice else ' '} {file.stem:{width}}  {_describe(file)}" for file in files]
    return "\n".join([f"{group}=", *lines])


def _describe(file: Path) -> str:
    """The file's first comment, and the choices that come with it unless the command line makes them."""
    lines = file.read_text(encoding="utf-8").splitlines()
    comment = next((line.lstrip("# ") for line in lines if line.startswith("#") and "@package" not in line), "")
    brings = ", ".join(f"{group}={choice}" for group, choice in _natural(file).items())
    return f"{comment} (brings {brings})" if brings else comment


def _natural(file: Path) -> dict[str, str]:
    """The choices of other groups that a file overrides, such as a model's own scorer."""
    return dict(re.findall(r"^ *- override /(\w+)(?:@\S+?)?: (\w+)", file.read_text(encoding="utf-8"), re.MULTILINE))


def _plain_values(key: str, value: Any, whole: bool = False) -> list[tuple[str, Any]]:
    """The values of a group of plain ones, such as model.dropout_at; none of a part, which has its own choices.

    `whole`: it is a part, of which its own values are wanted.
    """
    if not isinstance(value, dict):
        return [(key, value)]
    if "_target_" in value and not whole:
        return []
    return [leaf for name in value if name[0] != "_" for leaf in _plain_values(f"{key}.{name}", value[name])]


def _written(value: Any) -> str:
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _keys(text: str) -> str:
    """The YAML below its defaults and above Hydra's own settings."""
    body = text.split("\n\n", maxsplit=1)[1].split("\nhydra:")[0]
    return "\n".join(f"  {line}".rstrip() for line in body.strip().splitlines())
