"""Lightning's parts that the user of a run chooses: its loggers, and callbacks besides those that nmt needs."""

import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path, PurePath
from urllib.parse import urlsplit

from lightning import Trainer
from lightning.fabric.plugins.environments.lightning import LightningEnvironment
from lightning.fabric.utilities.exceptions import MisconfigurationException
from lightning.pytorch.callbacks import Callback, Timer
from lightning.pytorch.loggers import Logger

from nmt.config.fields import as_text
from nmt.config.keys import leaves
from nmt.config.nodes import Node, check_arguments, make
from nmt.config.schema import LoopSettings
from nmt.errors import CheckFailed, Mistake
from nmt.paths import check_writable
from nmt.training.averaging import EMAWeightAveraging

_EXTRAS = ("wandb", "mlflow")
"""Loggers that need a package; package and extra have the logger's name."""
_ERRORS = {
    "wandb": [("wandb.errors", "Error")],
    "mlflow": [("mlflow.exceptions", "MlflowException"), ("sqlalchemy.exc", "SQLAlchemyError")],
}
"""The modules and names of the errors for which these loggers' settings, servers or files are the reason."""
_PASSWORD = re.compile(r"//[^/@\s]*@")
_ELSEWHERE = re.compile(r"[/\\~]|(?!https?:)[a-z][a-z\d+.-]*:[/\\]", re.IGNORECASE)
"""The beginning of a path that is not relative, or of an address other than a server's, such as sqlite:///FILE."""
_PATHS = ("name", "version", "sub_dir")  # of loggers that write to files
_NAMES = ("name", "run_name", "experiment_name", "project")  # which may be written as numbers
_LONGEST_NAME = 128  # of a run in Weights & Biases; the end of a path tells the jobs of a sweep apart


def check_extensions(settings: LoopSettings) -> None:
    """Raises Mistake, before anything is read, if a logger or a callback cannot be used.

    A logger's package may be missing, or its address may contain a password, which the run directory would store.
    """
    for name, node in settings.logger.items():
        if "@" in urlsplit(str(node.get("tracking_uri"))).netloc:
            raise Mistake(
                f"logger.{name}.tracking_uri contains a user's name or password, which the run directory would store: "
                "set the environment variable MLFLOW_TRACKING_URI instead."
            )
        if name in _EXTRAS and find_spec(name) is None:
            raise Mistake(
                f"logger={name} needs the package {name}, which is not installed; run pip install -c constraints.txt "
                f"-e '.[{name}]' first, or use logger=csv."
            )
        check_arguments(node, f"logger.{name}", ["save_dir"])  # loggers are made only after the corpora are read
        for key in _PATHS:
            value = str(node.get(key))
            if name not in _EXTRAS and (_ELSEWHERE.match(value) or ".." in PurePath(value).parts):
                raise Mistake(
                    f"logger.{name}.{key} is '{value}', outside the folder of the run's logs: leave it out, or make it "
                    "a relative path."
                )
    if callbacks := build_callbacks(settings.callbacks):
        _check_together(callbacks, settings.ema_decay)


def _check_together(callbacks: Sequence[Callback], ema_decay: float | None) -> None:
    """Raises Mistake if Lightning refuses some of the user's callbacks beside those that nmt needs.

    For example, a second Timer, or a progress bar of their own.
    """
    own = [Timer(verbose=False), *([] if ema_decay is None else [EMAWeightAveraging(ema_decay)])]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # such as that there is an unused GPU
            Trainer(
                accelerator="cpu",
                devices=1,
                plugins=[LightningEnvironment()],  # whatever has started this process
                logger=False,
                enable_progress_bar=False,
                enable_model_summary=False,
                callbacks=[*own, *callbacks],
            )
    except (MisconfigurationException, RuntimeError) as error:
        raise Mistake(
            f"Lightning refuses the callbacks of this command ({' '.join(str(error).split()).rstrip('.')}): leave out "
            "the callback that it names."
        ) from error


def check_stored_loggers(loggers: Mapping[str, Node], file: Path) -> None:
    """Raises Mistake if a stored logger would write outside the run directory; anyone may have written `file`.

    The addresses of servers are allowed.
    """
    for name, node in loggers.items():
        values = [
            (key, str(text))
            for key, value in leaves(node).items()
            for text in (value if isinstance(value, list) else [value])
        ]
        for key, value in values:
            if _ELSEWHERE.match(value) or "$" in value or ".." in PurePath(value).parts:
                raise Mistake(
                    f"{file} sets logger.{name}.{key} to '{value}', outside the run directory: give the logger again "
                    f"on the command line, as in logger=csv."
                )


def build_loggers(loggers: Mapping[str, Node], run: Path, logs: Path) -> list[Logger]:
    """The loggers of the run in the folder `run`, which write to a new version in its folder `logs`.

    CSVLogger would delete the log before a resume. What is null in a logger's node depends on where the run is now, or
    is secret, so it is not stored with the run. Raises Mistake for a logger that would write elsewhere.
    """
    versions = [int(number) for path in logs.glob("version_*") if (number := path.name[8:]).isdecimal()]
    version = logs / f"version_{max(versions, default=-1) + 1}"
    if loggers:
        # Weights & Biases would write to the folder of temporary files, with a warning.
        check_writable("The folder of the logs", version)
    label = os.path.relpath(run)[-_LONGEST_NAME:]
    given_now = {
        "name": label,
        "run_name": label,
        # Lightning reads the variable only when it is imported, and knows no other default than a folder of files.
        "tracking_uri": os.environ.get("MLFLOW_TRACKING_URI") or "sqlite:///mlflow.db",
    }
    built = {
        name: make(
            {
                key: given_now.get(key) if value is None else as_text(value) if key in _NAMES else value
                for key, value in node.items()
            },
            Logger,
            save_dir=str(version),
        )
        for name, node in loggers.items()
    }
    for name, made in built.items():
        folder = made.log_dir  # None for a logger that writes to a server
        if folder is not None and not Path(folder).resolve().is_relative_to(version.resolve()):
            raise Mistake(
                f"logger.{name} would write to {folder}, outside {version}: leave out its name, version and sub_dir, "
                "or make them relative paths."
            )
    return list(built.values())


@contextmanager
def logger_errors(remedy: Callable[[], str]) -> Iterator[None]:
    """Turns an error of a logger's package, such as an unreachable server, into CheckFailed; `remedy` ends its message.

    Any other error is a bug, and is raised unchanged.
    """
    try:
        yield
    except Exception as error:
        name = next((name for name in _EXTRAS if isinstance(error, _errors_of(name))), None)
        if name is None:
            raise
        reason = _PASSWORD.sub("//", str(error).partition("\n")[0]).strip(". ")
        raise CheckFailed(
            f"logger={name} failed ({reason}): check logger.{name} and its server, or set logger=csv. {remedy()}"
        ) from error


def _errors_of(logger: str) -> tuple[type[Exception], ...]:
    """The classes of the errors that a logger's package raises, as far as they have been imported."""
    return tuple(getattr(sys.modules[module], name) for module, name in _ERRORS[logger] if module in sys.modules)


def build_callbacks(callbacks: Mapping[str, Node]) -> list[Callback]:
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
