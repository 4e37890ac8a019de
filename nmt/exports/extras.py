"""What the engines and the export formats need: optional packages, and options that they support."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from typing import get_args

from packaging.requirements import Requirement

from nmt.config.fields import EngineName
from nmt.config.messages import unknown
from nmt.errors import Mistake

PRECISIONS = ("float32", "int8")
"""Number formats that every engine supports."""

_PROJECT = "nmt-attention"


def check_supported(engine: str, device: str, precision: str, number_of_runs: int) -> None:
    """Raises Mistake for an unknown engine, and for options that it does not support."""
    if engine not in get_args(EngineName):
        raise Mistake(unknown("engine", engine, get_args(EngineName)))
    if number_of_runs > 1:
        raise Mistake(f"engine={engine} translates with one run, not with {number_of_runs}: use engine=torch.")
    if precision not in PRECISIONS:
        raise Mistake(
            f"engine={engine} supports precision={' and '.join(PRECISIONS)}, not {precision}: use one of them, or "
            "engine=torch."
        )
    if engine == "onnx" and device == "cuda":
        raise Mistake("engine=onnx runs on the CPU, but device is cuda: use device=cpu, or another engine.")
    try:
        check_extra(engine)
    except Mistake as error:
        raise Mistake(f"{str(error).rstrip('.')}, or use engine=torch.") from error


def check_extra(extra: str) -> None:
    """Raises Mistake if a package of an extra is missing, or if its version is not one that the project supports."""
    try:
        declared = [Requirement(text) for text in metadata.requires(_PROJECT) or []]
    except metadata.PackageNotFoundError:  # a checkout that is not installed
        return
    remedy = f"run {install_command(extra)} first."
    for requirement in declared:
        if (
            requirement.marker is None
            or requirement.marker.evaluate({"extra": ""})
            or not requirement.marker.evaluate({"extra": extra})
        ):
            continue
        try:
            installed = metadata.version(requirement.name)
        except metadata.PackageNotFoundError:
            raise Mistake(f"{extra} needs the package {requirement.name}, which is not installed; {remedy}") from None
        if installed not in requirement.specifier:
            versions = ",".join(sorted(map(str, requirement.specifier), reverse=True))  # >=, then <
            raise Mistake(
                f"{extra} needs the package {requirement.name}{versions}, but {installed} is installed; {remedy}"
            )


@contextmanager
def importing(extra: str) -> Iterator[None]:
    """Raises Mistake in place of the ImportError for a package of the extra that is missing or broken."""
    try:
        yield
    except ImportError as error:
        module = error.name or ""
        if module.partition(".")[0] == "nmt":  # a bug in nmt
            raise
        if isinstance(error, ModuleNotFoundError) and module and "." not in module:
            raise Mistake(f"{extra} needs the package {module}; run {install_command(extra)} first.") from error
        raise Mistake(
            f"A package that {extra} needs cannot be imported ({error}): reinstall it, or run {install_command(extra)} "
            "in a new environment."
        ) from error


def install_command(extra: str) -> str:
    return f"pip install -c constraints.txt -e '.[{extra.replace('_', '-')}]'"
