"""--help: a command's examples, the choices of each group and its keys, all read from the YAML files."""

import re
from pathlib import Path
from typing import Any

import yaml


def help_text(config_folder: Path, name: str, description: str) -> str:
    """The description, then every choice with the first comment of its file, then the keys with their defaults."""
    text = (config_folder / f"{name}.yaml").read_text(encoding="utf-8")
    defaults = {group: choice for entry in _groups(text) for group, choice in entry.items()}
    # What comes with the default choices is what is really used.
    for group, choice in list(defaults.items()):
        if choice is not None:
            defaults |= _natural(config_folder / group / f"{choice}.yaml")
    groups = [_group(config_folder, group, choice, group) for group, choice in defaults.items()]
    groups += [
        line for group, choice in defaults.items() if choice for line in _own_groups(config_folder, group, choice)
    ]
    parts = [description.strip()]
    if groups:
        parts.append("Choices, written group=choice (* is the default):\n\n" + "\n".join(groups))
    parts.append("Keys, written key=value or key.part=value:\n\n" + _keys(text))
    if groups:
        own = _own_keys(config_folder, defaults)
        parts.append("Keys of the default choices, another choice has its own:\n\n" + own)
    return "\n\n".join(parts)


def _groups(text: str) -> list[dict[str, Any]]:
    entries = yaml.safe_load(text)["defaults"]
    return [entry for entry in entries if isinstance(entry, dict) and not next(iter(entry)).startswith("override ")]


def _own_groups(config_folder: Path, group: str, choice: str) -> list[str]:
    """The groups that a choice itself brings, for parts of its own: '/norm@norm: layer_norm' of a model."""
    entries = yaml.safe_load((config_folder / group / f"{choice}.yaml").read_text(encoding="utf-8")).get("defaults", ())
    chosen = [(key, value) for entry in entries if isinstance(entry, dict) for key, value in entry.items() if value]
    found = [(re.fullmatch(r"/(\w+)@(\w+)", key), value) for key, value in chosen]
    return [_group(config_folder, key[1], value, f"{key[1]}@{group}.{key[2]}") for key, value in found if key]


def _group(config_folder: Path, group: str, default: str | None, title: str) -> str:
    files = sorted((config_folder / group).glob("*.yaml"))
    width = max((len(file.stem) for file in files), default=0)
    lines = [f"  {'*' if file.stem == default else ' '} {file.stem:{width}}  {_describe(file)}" for file in files]
    return "\n".join([f"{title}=", *lines])


def _describe(file: Path) -> str:
    """The file's first comment, and the choices that come with it unless the command line makes them."""
    lines = file.read_text(encoding="utf-8").splitlines()
    comment = next((line.lstrip("# ") for line in lines if line.startswith("#") and "@package" not in line), "")
    brings = ", ".join(f"{group}={choice}" for group, choice in _natural(file).items())
    return f"{comment} (brings {brings})" if brings else comment


def _natural(file: Path) -> dict[str, str]:
    """The choices of other groups that a file overrides, such as a model's own scorer."""
    return dict(re.findall(r"^ *- override /(\w+)(?:@\S+?)?: (\w+)", file.read_text(encoding="utf-8"), re.MULTILINE))


def _own_keys(config_folder: Path, defaults: dict[str, str | None]) -> str:
    """The plain keys of the chosen files with their values, as later files change those of earlier ones."""
    values: dict[str, Any] = {}
    for group, choice in defaults.items():
        if choice is None:
            continue
        for key, value in _content(config_folder / group / f"{choice}.yaml").items():
            # A file of package _global_ names the groups itself.
            part = value if key in defaults and isinstance(value, dict) else {key: value}
            values |= {f"{key if part is value else group}.{name}": leaf for name, leaf in part.items()}
    leaves = [leaf for key, value in values.items() for leaf in _leaves(key, value)]
    return "\n".join(f"  {key}={_written(value)}" for key, value in leaves if "._" not in key)


def _leaves(key: str, value: Any) -> list[tuple[str, Any]]:
    """The values of a group of plain ones, such as model.dropout_at; none of a part, which has its own choices."""
    if not isinstance(value, dict):
        return [(key, value)]
    return [] if "_target_" in value else [leaf for name in value for leaf in _leaves(f"{key}.{name}", value[name])]


def _content(file: Path) -> dict[str, Any]:
    """The YAML of a file, on top of the files of its own group that it names."""
    content = yaml.safe_load(file.read_text(encoding="utf-8")) or {}
    below: dict[str, Any] = {}
    for entry in content.pop("defaults", ()):
        if isinstance(entry, str) and entry != "_self_":
            below |= _content(file.with_name(f"{entry}.yaml"))
    return below | content


def _written(value: Any) -> str:
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _keys(text: str) -> str:
    """The YAML below its defaults and above Hydra's own settings."""
    body = text.split("\n\n", maxsplit=1)[1].split("\nhydra:")[0]
    return "\n".join(f"  {line}".rstrip() for line in body.strip().splitlines())
