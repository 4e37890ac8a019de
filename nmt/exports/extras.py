"""The optional packages of the export formats."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata

from packaging.requirements import Requirement

from nmt.config.nodes import CONFIGS
from nmt.errors import Mistake

_PROJECT = "nmt-attention"


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
    """What installs the packages of an extra, in a checkout or beside an installed wheel."""
    extra = extra.replace("_", "-")
    if CONFIGS.name == "_configs":  # of a wheel
        return f"pip install '{_PROJECT}[{extra}]'"
    return f"pip install -c constraints.txt -e '.[{extra}]'"
