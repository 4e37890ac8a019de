"""Shares of a job on a real Ray, where it is installed."""

import os
import signal
import sys
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import pytest

from nmt.decoding.ray_cluster import run_on_ray
from nmt.errors import Mistake

needs_ray = pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed")


def write_share(folder: Path, number: int, of: int) -> None:
    """Writes a file; the first process dies once, and the third is refused."""
    (folder / f"{number} of {of}").touch()
    if number == 1 and not (folder / "died").exists():
        (folder / "died").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    if number == 3:
        raise Mistake("no third share")


@pytest.fixture
def by_value() -> None:
    """Ray's processes do not find this module."""
    __import__("ray").cloudpickle.register_pickle_by_value(sys.modules[__name__])


@needs_ray
@pytest.mark.usefixtures("by_value")
@pytest.mark.filterwarnings("ignore")
def test_a_dead_process_is_started_again(tmp_path: Path) -> None:
    run_on_ray(partial(write_share, tmp_path), 2, None, gpu=False)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["1 of 2", "2 of 2", "died"]


@needs_ray
@pytest.mark.usefixtures("by_value")
@pytest.mark.filterwarnings("ignore")
def test_a_mistake_of_a_share_is_that_of_the_command(tmp_path: Path) -> None:
    with pytest.raises(Mistake, match=r"^no third share$"):
        run_on_ray(partial(write_share, tmp_path), 3, None, gpu=False)


def test_a_missing_package_is_a_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(
        Mistake, match=r"^cluster=ray needs ray, which is not installed; run pip install -c .*'\.\[ray\]'"
    ):
        run_on_ray(print, None, None, gpu=False)
