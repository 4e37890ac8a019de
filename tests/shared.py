"""Folders that all processes of a test session share, because making them takes seconds."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from nmt.files import locked


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """A folder of this process with what `make` has written into it, in the first process that asked for this `name`.

    The processes of pytest-xdist have folders for temporary files in a common one; a new test session has a new one.
    """
    own = factory.mktemp(name)
    if "PYTEST_XDIST_WORKER" not in os.environ:
        make(own)
        return own
    common = factory.getbasetemp().parent / "shared" / name
    whole = common / "whole"
    with locked(common, wait=True):
        if not whole.exists():
            made = common / "made"
            shutil.rmtree(made, ignore_errors=True)  # by a process that failed
            made.mkdir()
            make(made)
            made.rename(whole)
    shutil.copytree(whole, own, dirs_exist_ok=True, symlinks=True)
    return own
