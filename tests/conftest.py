"""Loads the fixtures of common_fixtures.py in the processes that run tests.

The process that only hands out tests to the others starts without torch, which would take it ten seconds before the
others begin. Every process has one thread, because results must not depend on how sums are split.
"""

import gc
import importlib
import os

import pytest
from grids import SOAK
from xdist import is_xdist_controller

os.environ["OMP_NUM_THREADS"] = "1"

# Imported before nmt. jaxtyping's hook gives what a module of nmt imports first bytecode of a name of its own, so in a
# new checkout every process would compile these libraries, which takes ten seconds.
LIBRARIES = ("sampled_checks", "lightning", "datasets", "matplotlib.pyplot", "sacrebleu", "rich.progress", "pydantic")


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    if not is_xdist_controller(session) or session.config.option.collectonly:
        for name in LIBRARIES:
            importlib.import_module(name)
        session.config.pluginmanager.import_plugin("common_fixtures")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not SOAK:
        left_out = {item for item in items if item.get_closest_marker("soak")}
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


def pytest_collection_finish() -> None:
    """Hides all modules and tests from the garbage collector, which would visit these million objects again and again.

    This saves a seventh of the suite's time, and rarer collections of what the tests make save another thirtieth.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


def pytest_sessionfinish() -> None:
    gc.unfreeze()
