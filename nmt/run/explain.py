"""--help: a command's examples, the choices of each group and its keys, all read from the YAML files."""

from pathlib import Path
from typing import Any

import yaml


def help_text(config_folder: Path, name: str, description: str) -> str:
    """The description, then every choice with the first comment of its file, then the keys with their defaults."""
    text = (config_folder / f"{name}.yaml").read_text(encoding="utf-8")
    groups = [_group(config_folder, *next(iter(entry.items()))) for entry in _groups(text)]
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
    lines = [f"  {'*' if f.stem == default else ' '} {f.stem:{width}}  {_first_comment(f)}" for f in files]
    return "\n".join([f"{group}=", *lines])


def _first_comment(file: Path) -> str:
    lines = file.read_text(encoding="utf-8").splitlines()
    return next((line.lstrip("# ") for line in lines if line.startswith("#") and "@package" not in line), "")


def _keys(text: str) -> str:
    """The YAML below its defaults and above Hydra's own settings."""
    body = text.split("\n\n", maxsplit=1)[1].split("\nhydra:")[0]
    return "\n".join(f"  {line}".rstrip() for line in body.strip().splitlines())
