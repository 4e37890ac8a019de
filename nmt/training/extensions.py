"""Lightning's parts that the user of a run chooses: its loggers, and callbacks besides those that nmt needs."""

from importlib.util import find_spec
from pathlib import Path

from lightning.pytorch.callbacks import Callback
from lightning.pytorch.loggers import Logger

from nmt.config.nodes import Node, make
from nmt.config.schema import LoopSettings
from nmt.errors import Mistake

_EXTRAS = ("wandb", "mlflow")
"""The loggers that need a package, which has the name of the logger, as its extra has."""


def check_extensions(settings: LoopSettings) -> None:
    """Raises Mistake, before anything is read, if a logger's package is missing or a callback cannot be made."""
    for name in settings.logger:
        if name in _EXTRAS and find_spec(name) is None:
            raise Mistake(
                f"logger={name} needs the package {name}, which is not installed; run pip install -c constraints.txt "
                f"-e '.[{name}]' first, or use logger=csv."
            )
    build_callbacks(settings.callbacks)


def build_loggers(loggers: Node, folder: Path) -> list[Logger]:
    """The loggers, which write to a new version in `folder`: CSVLogger would delete the log before a resume."""
    versions = [int(number) for path in folder.glob("version_*") if (number := path.name[8:]).isdecimal()]
    version = folder / f"version_{max(versions, default=-1) + 1}"
    return [make(node, save_dir=str(version)) for node in loggers.values()]


def build_callbacks(callbacks: Node) -> list[Callback]:
    """The user's callbacks. Raises Mistake for a node that describes something else."""
    built = {name: make(node) for name, node in callbacks.items()}
    for name, callback in built.items():
        if not isinstance(callback, Callback):
            raise Mistake(
                f"callbacks.{name} is a {type(callback).__name__}, which is not a Lightning callback: set the _target_ "
                "of a class derived from lightning.Callback, as in "
                "'+callbacks.mine={_target_: my_package.MyCallback}'."
            )
    return list(built.values())
