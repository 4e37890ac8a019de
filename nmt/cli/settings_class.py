"""The class of each command's settings."""

import pkgutil

from nmt.config.fields import Keys
from nmt.config.schema import PretrainSettings, TrainSettings

# nmt.training reads these too, so they stand below the commands.
_OF_TRAINING: dict[str, type[Keys]] = {"train": TrainSettings, "pretrain": PretrainSettings}


def settings_class(command: str) -> type[Keys]:
    """The settings of a command, by the name of its YAML file: nmt.commands.translate_settings.TranslateSettings.

    These modules are light, so that the command line is checked before torch is imported.
    """
    if command in _OF_TRAINING:
        return _OF_TRAINING[command]
    name = "".join(word.capitalize() for word in command.split("_"))
    settings: type[Keys] = pkgutil.resolve_name(f"nmt.commands.{command}_settings:{name}Settings")
    return settings
