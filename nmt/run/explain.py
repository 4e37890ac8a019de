"""--help: a command's examples, the choices of each group and its keys, all read from the YAML files."""

import re
from pathlib import Path
from typing import Any

import yaml


def help_text(config_folder: Path, name: str, description: str) -> str:
    """The description, then every choice with the first comment of its file, then the keys with their defaults."""
    text = (config_folder / f"{name}.yaml").read_text(encoding="utf-8")
    defaults = {group: choice for entry in _groups(text) for group, choice in entry.items()}
    if "model" in defaults:
        defaults |= _natural(config_folder / "model" / f"{defaults['model']}.yaml")
    groups = [_group(config_folder, group, choice) for group, choice in defaults.items()]
    parts = [description.strip()]
    if groups:
        parts.append("Choices, written group=choice (* is the default):\n\n" + "\n".join(groups))
    return "\n\n".join([*parts, "Keys, written key=value or key.part=value:\n\n" + _keys(text)])


def _groups(text: str) -> list[dict[str, Any]]:
    entries = yaml.safe_load(text)["defaults"]
    return [entry for entry in entries if isinstance(entry, dict) and not next(iter(entry)).startswith("override ")]


def _group(config_folder: Path, group: str, default: str) -> str:
    files = sorted((config_folder / group).glob("*.yaml"))
    width = max((len(file.stem) for file in files), default=0)
    lines = [f"  {'*' if file.stem == default else ' '} {file.stem:{width}}  {_describe(file)}" for file in files]
    return "\n".join([f"{group}=", *lines])


def _describe(file: Path) -> str:
    """The file's first comment, and the choices that come with it unless the command line makes them."""
    lines = file.read_text(encoding="utf-8").splitlines()
    comment = next((line.lstrip("# ") for line in lines if line.startswith("#") and "@package" not in line), "")
    brings = ", ".join(f"{group}={choice}" for group, choice in _natural(file).items())
    return f"{comment} (brings {brings})" if brings else comment


def _natural(file: Path) -> dict[str, str]:
    """The choices of other groups that a file overrides, such as a model's own scorer."""
    return dict(re.findall(r"^ *- override /(\w+)@\S+ (\w+)", file.read_text(encoding="utf-8"), re.MULTILINE))


def _keys(text: str) -> str:
    """The YAML below its defaults and above Hydra's own settings."""
    body = text.split("\n\n", maxsplit=1)[1].split("\nhydra:")[0]
    return "\n".join(f"  {line}".rstrip() for line in body.strip().splitlines())
