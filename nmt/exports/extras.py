"""Checks that the optional packages of a format are installed."""

from importlib import metadata

from packaging.requirements import Requirement

_PROJECT = "nmt-attention"


def check_extra(extra: str) -> None:
    """Raises ValueError if a package of an extra is missing, or has a version that the project does not support."""
    try:
        declared = [Requirement(text) for text in metadata.requires(_PROJECT) or []]
    except metadata.PackageNotFoundError:  # a checkout that is not installed
        return
    remedy = f"run pip install -c constraints.txt -e '.[{extra}]' first."
    for each in declared:
        if each.marker is None or each.marker.evaluate({"extra": ""}) or not each.marker.evaluate({"extra": extra}):
            continue
        try:
            found = metadata.version(each.name)
        except metadata.PackageNotFoundError:
            raise ValueError(f"{extra} needs the package {each.name}, which is not installed; {remedy}") from None
        if found not in each.specifier:
            versions = ",".join(sorted(map(str, each.specifier), reverse=True))  # >=, then <
            raise ValueError(f"{extra} needs the package {each.name}{versions}, but {found} is installed; {remedy}")
