"""A server of several processes: they add up their metrics, are replaced, and end with the first one."""

import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from attention_runs import job
from fastapi.testclient import TestClient
from prometheus_client import values

import nmt.commands.serve
from nmt.commands.serve import serve
from nmt.errors import Mistake
from nmt.serving.application import Metrics
from nmt.serving.server_processes import METRICS_FOLDER

CHECKOUT = Path(__file__).resolve().parents[2]


class FakeBatcher:
    """A batcher under load; it is its own gallery."""

    def __init__(self, load: float) -> None:
        self.load, self.sentences_per_second, self.number_loaded, self.gallery = load, 2.0, 1, self


def test_any_worker_answers_with_the_metrics_of_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(METRICS_FOLDER, str(tmp_path))
    batchers: list[Any] = [FakeBatcher(0.25), FakeBatcher(0.5)]
    workers = []
    for number, batcher in enumerate(batchers, start=1):
        of_process = values.MultiProcessValue(lambda number=number: number)  # type: ignore[no-untyped-call]
        monkeypatch.setattr(values, "ValueClass", of_process)
        workers.append(Metrics(batcher))
        for _ in range(number):
            workers[-1].record("/translate", 200, 0.1)
    for metrics in workers:
        text = metrics.text().decode()
        assert 'nmt_requests_total{path="/translate",status="200"} 3.0' in text
        assert 'nmt_request_seconds_count{path="/translate"} 3.0' in text
        assert "nmt_queue_load 0.5" in text
        assert "nmt_sentences_per_second 4.0" in text
        assert "nmt_models_loaded 2.0" in text


PROGRAM = """
import logging, os, signal, sys, time
from pathlib import Path
from types import ModuleType, SimpleNamespace
from nmt.errors import exit_code
from nmt.serving import server_processes as workers

assert "torch" not in sys.modules
logging.basicConfig()
workers._SECONDS_TO_RETRY = 0.1
folder = Path(sys.argv[1])

def work(ready):
    if (folder / "refuse").exists():
        raise workers.Mistake("nothing to serve")
    if (folder / "die").exists():
        os.kill(os.getpid(), signal.SIGKILL)
    ready()
    (folder / f"{os.getpid()}.worker").touch()
    while True:
        time.sleep(1)

def run():
    workers.run_workers(work, 2, lambda: print("ready", os.environ["OMP_NUM_THREADS"], flush=True), 1.0)
    return 0

sys.exit(exit_code(run))
"""


@pytest.fixture
def program(tmp_path: Path) -> Callable[[], "subprocess.Popen[str]"]:
    """Starts a program with two workers that write files named after their process ids."""

    def start() -> "subprocess.Popen[str]":
        environment = {**os.environ, "OMP_NUM_THREADS": "3"}
        return subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(PROGRAM), str(tmp_path)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )

    return start


def numbers(folder: Path, number: int) -> set[int]:
    """The process ids of the workers, once there are that many."""
    deadline = time.monotonic() + 60
    while len(found := {int(path.stem) for path in folder.glob("*.worker")}) < number:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return found


def wait_for_end(process: int) -> None:
    deadline = time.monotonic() + 60
    while Path(f"/proc/{process}").exists() and "State:\tZ" not in Path(f"/proc/{process}/status").read_text():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="looks at processes as Linux shows them")
def test_a_worker_that_dies_is_replaced_and_sigterm_ends_all(tmp_path: Path, program: Callable) -> None:
    with program() as process:
        assert process.stdout.readline() == "ready 3\n"
        first = numbers(tmp_path, 2)
        os.kill(min(first), signal.SIGKILL)
        every = numbers(tmp_path, 3)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 143
        log = process.stderr.read()
    assert f"Worker process {min(first)} has ended (exit code -9); another one is started" in log
    assert "Traceback" not in log
    assert not any(Path(f"/proc/{worker}").exists() for worker in every)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="looks at processes as Linux shows them")
def test_workers_end_if_the_first_process_is_killed(tmp_path: Path, program: Callable) -> None:
    with program() as process:
        workers = numbers(tmp_path, 2)
        process.kill()
    for worker in workers:
        wait_for_end(worker)


@pytest.mark.parametrize(
    ("file", "code", "message"),
    [("refuse", 2, "nothing to serve"), ("die", 1, r"The first worker ended before it was ready \(exit code -9\)\.")],
)
def test_a_first_worker_that_fails_ends_the_command(
    tmp_path: Path, program: Callable, file: str, code: int, message: str
) -> None:
    (tmp_path / file).touch()
    with program() as process:
        output, log = process.communicate(timeout=60)
    assert (process.returncode, output) == (code, "")
    assert len(re.findall(message, log)) == 1


def test_a_system_that_cannot_fork_has_one_process(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("multiprocessing.get_all_start_methods", lambda: ["spawn"])
    with pytest.raises(Mistake, match="workers is 2, but this system cannot fork processes: use workers=1"):
        serve(job("serve", run_dirs=["maps_luong"], workers=2))


def test_each_worker_serves_on_the_same_socket(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    events: list[Any] = []
    monkeypatch.setattr("gc.freeze", lambda: None)
    monkeypatch.setattr("nmt.serving.connections.LimitedServer.run", lambda _, sockets: events.append(sockets))

    def run_workers(work: Any, number: int, first_ready: Callable[[], None], seconds: float) -> None:
        work(lambda: events.append("ready"))
        work(lambda: events.append("ready"))
        first_ready()
        events.append((number, seconds))

    monkeypatch.setattr(nmt.commands.serve, "run_workers", run_workers)
    serve(job("serve", run_dirs=["maps_luong"], port=0, workers=2, device="cpu", engine="torch", time_limit=7))
    assert events == ["ready", events[1], "ready", events[1], (2, 15)]
    [listening] = events[1]
    assert capsys.readouterr().out == f"http://127.0.0.1:{listening.getsockname()[1]}\n"
    listening.close()


def test_the_example_for_ray_serve_builds_a_server(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without Ray: `serve.deployment` and `serve.ingress` are decorators, whose results are classes to bind."""
    text = (CHECKOUT / "docs" / "how_to" / "serve_on_ray.py").read_text().replace("/runs/production", "maps_luong")
    built: list[Any] = []

    def ingress(build: Callable[[], Any]) -> Callable[[type], type]:
        built.append(build())
        return lambda kind: type("Bound", (kind,), {"bind": staticmethod(lambda: "bound")})

    ray: Any = ModuleType("ray")
    ray.serve = SimpleNamespace(deployment=lambda num_replicas: lambda kind: kind, ingress=ingress)
    monkeypatch.setitem(sys.modules, "ray", ray)
    names: dict[str, Any] = {}
    exec(text, names)
    assert names["app"] == "bound"
    with TestClient(built[0], base_url="http://localhost") as client:
        assert client.get("/ready").json() == {"status": "ready", "broken": [], "outdated": []}
