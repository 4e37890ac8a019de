"""Shares of a job on a real Ray, where it is installed, and on a stand-in that answers as Ray 2.60 does."""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from nmt.decoding.ray_cluster import run_on_ray
from nmt.errors import CheckFailed, Mistake
from nmt.exports.damage import DamagedExport
from nmt.signals import EndedBySignal

needs_ray = pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed")


def write_share(folder: Path, number: int, of: int) -> None:
    """Writes a file; the first process dies once, the third is refused, and the fourth has a bug."""
    (folder / f"{number} of {of}").touch()
    if number == 1 and not (folder / "died").exists():
        (folder / "died").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    if number == 3 and of == 3:
        raise Mistake("no third share")
    if number == 4:
        raise KeyError("a bug")


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


@needs_ray
@pytest.mark.usefixtures("by_value")
@pytest.mark.filterwarnings("ignore")
def test_a_bug_in_a_share_shows_where_it_is(tmp_path: Path) -> None:
    with pytest.raises(KeyError) as caught:
        run_on_ray(partial(write_share, tmp_path), 4, None, gpu=False)
    assert 'raise KeyError("a bug")' in str(caught.value)


@needs_ray
@pytest.mark.filterwarnings("ignore")
def test_what_is_no_address_is_a_mistake() -> None:
    with pytest.raises(
        Mistake, match=r"^cluster_address is nowhere, but this process cannot join .* \(Invalid address"
    ):
        run_on_ray(print, None, "nowhere", gpu=False)


def test_a_missing_package_is_a_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(
        Mistake, match=r"^cluster=ray needs ray, which is not installed; run pip install -c .*'\.\[ray\]'"
    ):
        run_on_ray(print, None, None, gpu=False)


class RayError(Exception):
    pass


class RayTaskError(RayError):
    def __init__(self, cause: Exception) -> None:
        super().__init__("the traceback of the other process")
        self.cause = cause


class WorkerCrashedError(RayError):
    pass


class OutOfMemoryError(RayError):
    pass


class StandIn(ModuleType):
    """Runs the shares at once, unless `error` is raised by what is called `fails`."""

    def __init__(self, machines: list[dict[str, float]]) -> None:
        super().__init__("ray")
        self.exceptions = ModuleType("ray.exceptions")
        for kind in (RayError, RayTaskError, WorkerCrashedError, OutOfMemoryError):
            setattr(self.exceptions, kind.__name__, kind)
        self.machines = machines
        self.started: list[tuple[str, dict[str, Any]]] = []
        self.asked: dict[str, Any] = {}
        self.fails, self.error = "", Exception()
        self.down = 0

    def _step(self, name: str) -> None:
        if name == self.fails:
            raise self.error

    def init(self, address: str, **options: Any) -> None:
        self._step("init")
        self.started.append((address, options))
        signal.signal(signal.SIGTERM, lambda number, _: sys.exit(number))  # as Ray does
        if "num_cpus" in options:
            self.machines = [{"CPU": options["num_cpus"]}]

    def nodes(self) -> list[dict[str, Any]]:
        dead = {"Alive": False, "Resources": {"CPU": 99.0, "GPU": 9.0}}
        return [dead, *({"Alive": True, "Resources": resources} for resources in self.machines)]

    def remote(self, **asked: Any) -> Callable[..., Any]:
        self.asked = asked

        def decorated(function: Callable[..., None]) -> Any:
            task = ModuleType("task")
            task.remote = lambda *arguments: partial(function, *arguments)  # type: ignore[attr-defined]
            return task

        return decorated

    def get(self, tasks: list[Callable[[], None]]) -> None:
        self._step("get")
        for task in tasks:
            task()

    def shutdown(self) -> None:
        self.down += 1


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    """Two machines, of which the larger one has two GPUs."""
    stand_in = StandIn([{"CPU": 3.0}, {"CPU": 8.0, "GPU": 2.0}, {"memory": 5.0}])
    monkeypatch.setitem(sys.modules, "ray", stand_in)
    for name in ("RAY_worker_niceness", "RAY_USAGE_STATS_ENABLED"):
        monkeypatch.setenv(name, "0")
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setattr("nmt.decoding.ray_cluster.usable_cores", lambda: 4)
    yield stand_in
    assert stand_in.down == len(stand_in.started)


def numbers(address: str | None = "head:6379", processes: int | None = None, *, gpu: bool = False) -> list[int]:
    """The numbers of the shares that have run."""
    shares: list[tuple[int, int]] = []
    run_on_ray(lambda *share: shares.append(share), processes, address, gpu=gpu)
    assert {of for _, of in shares} == {len(shares)}
    return [number for number, _ in shares]


@pytest.mark.parametrize(("processes", "threads", "cores", "run"), [(None, "1", 4, 4), (6, "1", 6, 6), (3, "2", 6, 3)])
def test_without_an_address_a_new_cluster_is_started(
    ray: StandIn, monkeypatch: pytest.MonkeyPatch, processes: int | None, threads: str, cores: int, run: int
) -> None:
    """Whatever clusters are running on this machine."""
    monkeypatch.setenv("OMP_NUM_THREADS", threads)
    assert numbers(None, processes) == list(range(1, run + 1))
    assert ray.started == [("local", {"num_cpus": cores, "include_dashboard": False})]


@pytest.mark.parametrize("address", ["local", "head:6379"])
def test_a_signal_does_what_it_did_before_ray_was_started(ray: StandIn, address: str) -> None:
    """With Ray's handler, the command would end with exit code 15 instead of 143."""
    ended = EndedBySignal(143, signal.SIGTERM)

    def ours(*_: Any) -> None:
        raise ended

    before = signal.signal(signal.SIGTERM, ours)
    try:
        with pytest.raises(EndedBySignal) as caught:
            run_on_ray(lambda *_: signal.raise_signal(signal.SIGTERM), 1, address, gpu=False)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert caught.value is ended


def test_an_address_of_the_environment_is_used(ray: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "other:1")
    numbers(None)
    numbers("head:2")
    assert ray.started == [("other:1", {}), ("head:2", {})]
    ray.fails, ray.error = "init", ConnectionError("no answer.")
    with pytest.raises(
        Mistake, match=r"^RAY_ADDRESS is other:1, but this process cannot join a cluster of Ray there \(no answer\): "
    ):
        numbers(None)


@pytest.mark.parametrize(
    ("threads", "gpu", "run", "asked_gpus"),
    [("1", False, 11, 0), ("2", False, 5, 0), ("1", True, 2, 1), ("5", True, 1, 1)],
)
def test_as_many_processes_run_as_fit(
    ray: StandIn, monkeypatch: pytest.MonkeyPatch, threads: str, gpu: bool, run: int, asked_gpus: int
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", threads)
    assert len(numbers(gpu=gpu)) == run
    assert (ray.asked["num_cpus"], ray.asked["num_gpus"]) == (int(threads), asked_gpus)


def test_a_process_that_fits_nowhere_is_a_mistake(ray: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray would wait forever, also if more processes than fit are asked for."""
    monkeypatch.setenv("OMP_NUM_THREADS", "9")
    with pytest.raises(Mistake) as caught:
        numbers(processes=2)
    assert str(caught.value) == (
        "Each process needs 9 cores (OMP_NUM_THREADS), but the largest machine of the cluster has 8: lower "
        "OMP_NUM_THREADS, or add a larger machine."
    )
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    ray.machines = [{"CPU": 8.0}, {"CPU": 1.0, "GPU": 1.0}]
    with pytest.raises(Mistake, match="the largest machine with a GPU of the cluster has 1: lower"):
        numbers(gpu=True)
    ray.machines = [{"memory": 5.0}]
    with pytest.raises(Mistake, match="the largest machine of the cluster has 0: lower"):
        numbers()


VERSIONS = "Version mismatch: The cluster was started with:\n    Ray: 2.50\n"


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ValueError("Invalid address format: nowhere"), "Invalid address format: nowhere"),
        (ConnectionError("Failed to connect"), "Failed to connect"),
        (RayError("Timed out"), "Timed out"),
        (RuntimeError(VERSIONS), "Version mismatch: The cluster was started with: Ray: 2.50"),
    ],
)
def test_a_cluster_that_cannot_be_joined_is_a_mistake(ray: StandIn, error: Exception, reason: str) -> None:
    ray.fails, ray.error = "init", error
    with pytest.raises(Mistake) as caught:
        numbers("nowhere")
    assert str(caught.value) == (
        f"cluster_address is nowhere, but this process cannot join a cluster of Ray there ({reason}): check the "
        "address and the versions of Ray and Python, or leave it out to use this machine."
    )


def test_a_failure_of_a_new_cluster_is_no_mistake(ray: StandIn) -> None:
    ray.fails, ray.error = "init", RuntimeError("a bug")
    with pytest.raises(RuntimeError, match="a bug"):
        numbers(None)


def test_the_version_is_named_where_ray_hides_it_in_the_cause(ray: StandIn) -> None:
    ray.fails, ray.error = "init", ConnectionError("Failed to connect")
    ray.error.__cause__ = RuntimeError(VERSIONS)
    with pytest.raises(Mistake, match=r"\(Version mismatch: The cluster was started with: Ray: 2\.50\)"):
        numbers()


@pytest.mark.parametrize("cause", [Mistake("wrong"), CheckFailed("failed"), DamagedExport("damaged")])
def test_a_sentence_of_a_share_is_that_of_the_command(ray: StandIn, cause: Exception) -> None:
    ray.fails, ray.error = "get", RayTaskError(cause)
    with pytest.raises(type(cause)) as caught:
        numbers()
    assert caught.value is cause


@pytest.mark.parametrize("cause", [KeyError("a bug"), OSError(28, "full"), ValueError("a bug")])
def test_another_error_of_a_share_keeps_its_traceback(ray: StandIn, cause: Exception) -> None:
    ray.fails, ray.error = "get", RayTaskError(cause)
    with pytest.raises(RayTaskError, match="the traceback of the other process"):
        numbers()


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (
            WorkerCrashedError("x"),
            "A process died again and again (WorkerCrashedError). Check its memory; the same command resumes.",
        ),
        (
            OutOfMemoryError("x"),
            "A process died again and again (OutOfMemoryError). Check its memory; the same command resumes.",
        ),
        (
            RayError("The node\nis gone."),
            "Ray cannot run the processes (RayError: The node is gone). Check the cluster; the same command resumes.",
        ),
    ],
)
def test_a_failure_of_ray_is_a_sentence(ray: StandIn, error: RayError, sentence: str) -> None:
    ray.fails, ray.error = "get", error
    with pytest.raises(CheckFailed) as caught:
        numbers()
    assert str(caught.value) == sentence
