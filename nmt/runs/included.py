"""The translation models that come with this package, which are used by name instead of a folder."""

import os
from pathlib import Path

from nmt.paths import real_path

_PACKAGE = Path(__file__).resolve().parents[1]
_FOLDERS = (_PACKAGE / "_models", _PACKAGE.parent / "models")
"""In the wheel and in a checkout."""


def included_models() -> dict[str, Path]:
    """The run directories of the included models by name, such as en-vi."""
    folder = next((path for path in _FOLDERS if path.is_dir()), None)
    if folder is None:
        return {}
    return {file.parent.name: file.parent for file in sorted(folder.glob("*/config.yaml"))}


def named_run(name: str | Path) -> Path:
    """The run directory that a user names: a folder, or an included model if no folder has that name."""
    path = Path(name)
    return path if os.path.lexists(path) else included_models().get(str(name), path)


def included_name(folder: Path) -> str | None:
    """The name of the included model whose run directory this is, so that commands must not write in it; or None."""
    real_folder = real_path(folder)
    return next(
        (name for name, model_folder in included_models().items() if real_path(model_folder) == real_folder), None
    )
