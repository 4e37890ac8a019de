"""--help: a command's examples, the choices of each group and its keys, all read from the YAML files."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from nmt.run.refusals import unknown


def help_text(config_folder: Path, name: str, description: str, arguments: Sequence[str] = ()) -> str:
    """The description, every choice with the first comment of its file, and the keys with their values.

    Arguments group=choice, such as model=luong, make their choice instead of the default one. Raises ValueError when
    there is no such choice.
    """
    text = (config_folder / f"{name}.yaml").read_text(encoding="utf-8")
    choices = _choices(config_folder, text, arguments)
    own = [part for group, choice in choices.items() if choice for part in _own_groups(config_folder, group, choice)]
    chosen = {group: (group, choice) for group, choice in choices.items() if group not in dict(own)}
    # Of a part of a model's own, such as its norm, an experiment may choose another than the model.
    chosen |= {f"{group}@{at}": (group, choices.get(group, choice)) for group, (at, choice) in own}
    groups = [_group(config_folder, group, choice, title) for title, (group, choice) in chosen.items()]
    parts = [description.strip()]
    if groups:
        parts.append("Choices, written group=choice (* is what is used):\n\n" + "\n".join(groups))
    parts.append("Keys, written key=value or key.part=value:\n\n" + _keys(text))
    if groups:
        keys = _own_keys(config_folder, choices)
        parts.append("Keys of the choices marked *; for those of another, give it with --help:\n\n" + keys)
    return "\n\n".join(parts)


def _groups(text: str) -> list[dict[str, Any]]:
    entries = yaml.safe_load(text)["defaults"]
    return [entry for entry in entries if isinstance(entry, dict) and not next(iter(entry)).startswith("override ")]


def _choices(config_folder: Path, text: str, arguments: Sequence[str]) -> dict[str, str | None]:
    """What is used of each group: what the arguments choose, then what comes with other choices, then the default."""
    choices = {group: choice for entry in _groups(text) for group, choice in entry.items()}
    given = dict(argument.split("=", 1) for argument in arguments if argument.partition("=")[0] in choices)
    for group, choice in given.items():
        existing = [file.stem for file in (config_folder / group).glob("*.yaml")]
        if choice not in existing:
            raise ValueError(unknown(group, choice, existing))
    choices |= given
    # An experiment, which comes last, also says which other choices bring theirs.
    for group, choice in [*list(choices.items())[::-1], *choices.items()]:
        if choice is not None:
            choices |= _natural(config_folder / group / f"{choices[group]}.yaml") | given
    return choices


def _own_groups(config_folder: Path, group: str, choice: str) -> list[tuple[str, tuple[str, str]]]:
    """The groups that a choice itself brings, for parts of its own, each with its place and the choice that it makes.

    '/norm@norm: layer_norm' of a model is ("norm", ("model.norm", "layer_norm")).
    """
    entries = yaml.safe_load((config_folder / group / f"{choice}.yaml").read_text(encoding="utf-8")).get("defaults", ())
    chosen = [(key, value) for entry in entries if isinstance(entry, dict) for key, value in entry.items() if value]
    found = [(re.fullmatch(r"/(\w+)@(\w+)", key), value) for key, value in chosen]
    return [(key[1], (f"{group}.{key[2]}", value)) for key, value in found if key]


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


def _own_keys(config_folder: Path, choices: dict[str, str | None]) -> str:
    """The plain keys of the chosen files with their values, as later files change those of earlier ones."""
    values: dict[str, Any] = {}
    for group, choice in choices.items():
        if choice is None:
            continue
        file = config_folder / group / f"{choice}.yaml"
        # A file of package _global_ names the groups itself.
        within = "" if "@package _global_" in file.read_text(encoding="utf-8") else f"{group}."
        values |= {leaf: value for key, part in _content(file).items() for leaf, value in _leaves(within + key, part)}
    return "\n".join(f"  {key}={_written(value)}" for key, value in values.items() if "._" not in key)


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
