"""scripts/server.py and scripts/bench/serving.py, with the real server of a tiny run."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pytest

from nmt.errors import Mistake
from nmt.runs.included import named_run
from scripts.bench import serving
from scripts.processes import of_each
from scripts.server import Connection, Server, server


def options(*given: str) -> Namespace:
    parser = ArgumentParser()
    serving.add_arguments(parser)
    return parser.parse_args(given)


@pytest.fixture
def source(tmp_path: Path) -> str:
    file = tmp_path / "in.en"
    file.write_text("one two three .\none two .\n", encoding="utf-8")
    return str(file)


@pytest.fixture(scope="module")
def running(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that ends as it should."""
    with server(folder / "maps_luong", tmp_path_factory.mktemp("running") / "log", "device=cpu") as one:
        yield one
    assert one.process.returncode == 143


def test_a_server_runs_until_the_end_of_the_block(running: Server, here: Path, tmp_path: Path) -> None:
    async def asked(port: int) -> list[tuple[int, bytes]]:
        connection = Connection(port)
        fields = {"q": "one two .", "source": "en", "target": "vi"}
        answers = [await connection.ask("/health"), await connection.ask("/translate", fields)]
        connection.close(abruptly=True)
        return answers

    (status, health), (translated, body) = asyncio.run(asked(running.port))
    assert (status, translated, json.loads(health)) == (200, 200, {"status": "ok"})
    assert isinstance(json.loads(body)["translatedText"], str)
    assert running.memory > 1
    assert running.cpu_seconds > 0
    with (
        pytest.raises(Mistake, match=r"The server did not start: .*port"),
        server(Path("maps_luong"), tmp_path / "log", "port=99999"),
    ):
        pass


def test_all_processes_of_a_server_count(tmp_path: Path) -> None:
    """With workers=2, other processes than the started one translate."""
    work = "import time; kept = bytearray(b'x') * 50_000_000; sum(range(10**7)); print('http://ready', flush=True)"
    command = ["bash", "-c", f'"{sys.executable}" -c "{work}; time.sleep(60)" & wait']
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            started = Server(process, process.stdout.readline().strip(), tmp_path / "log")
            assert started.memory > 50
            assert started.cpu_seconds > 0
        finally:
            for one in of_each(process.pid, float):
                os.kill(int(one), signal.SIGKILL)


def test_blank_lines_are_no_sentences(tmp_path: Path) -> None:
    (tmp_path / "in").write_text("one two .\n\n \none .\n", encoding="utf-8")
    assert serving.sentences(tmp_path / "in") == ["one two .", "one ."]


@pytest.mark.soak
def test_every_system_is_measured_at_every_level(running: Server, here: Path, source: str) -> None:
    """Also a server that runs already. Each system is a process that imports everything, so one test measures all."""
    levels = ("--levels", "1,3", "--rounds", "2", "--seconds", "0.1")
    beside = ("--plain", "--beside", f"the other={running.port}")
    record = serving.run(options("maps_luong", source, *levels, *beside))
    assert json.loads(json.dumps(record["systems"]["nmt.serve"]))
    assert list(record["systems"]) == ["nmt.translate", "nmt.serve", "plain FastAPI", "the other"]
    for rounds_of in record["systems"].values():
        assert {clients: len(rounds) for clients, rounds in rounds_of.items()} == {1: 2, 3: 2}
        assert all(measured["rate"] > 0 for rounds in rounds_of.values() for measured in rounds)
    rows = serving.table(record).splitlines()
    measured = [row for row in rows if row.startswith(("| nmt.serve | ", "| plain FastAPI | ", "| the other | "))]
    assert len(measured) == 6
    assert not any("nan" in row for row in measured)


def test_the_table_has_medians_of_the_rounds_and_shares_within_each() -> None:
    def rounds(*rates: float) -> list[dict[str, float]]:
        rest = {"cpu": 0.002, "median": 0.25, "p99": 1.5, "memory": 1234.0, "client_cpu": 0.07}
        return [{"rate": rate, **rest} for rate in rates]

    systems = {"nmt.translate": {1: rounds(10.0, 20.0, 40.0)}, "nmt.serve": {1: rounds(9.0, 10.0, 30.0)}}
    table = serving.table({"rounds": 3, "seconds": 2.0, "sentences": 5, "systems": systems})
    assert table.startswith("3 alternating rounds of 2 s; 5 sentences, one per request.")
    assert table.splitlines()[-2:] == [
        "| nmt.translate | | 20.0 | 100% | 2.0 ms | | | | |",
        "| nmt.serve | 1 | 10.0 | 75% | 2.0 ms | 250 ms | 1,500 ms | 1,234 MiB | 7% |",
    ]


def test_all_of_our_systems_have_the_engine_that_was_set(
    here: Path, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[tuple[str, ...]] = []

    def begin(*given: Any) -> AbstractContextManager[None]:
        started.append(tuple(map(str, given)))
        return nullcontext()

    def stop(_: object) -> str:
        raise Mistake("stopped")

    monkeypatch.setattr(serving, "server", lambda run, log, *settings: begin("server", *settings))
    monkeypatch.setattr(serving, "child", begin)
    monkeypatch.setattr(serving, "_line", stop)
    with pytest.raises(Mistake, match="stopped"):
        serving.run(options("maps_transformer", source, "--plain", "--set=engine=ctranslate2"))
    loaded = ("maps_transformer", "ctranslate2", "float32")
    assert started == [("server", "device=cpu", "engine=ctranslate2"), ("direct", source, *loaded), ("plain", *loaded)]
    with pytest.raises(Mistake, match="stopped"):
        serving.run(options("en-vi", source, "--plain"))
    assert started[4] == ("direct", source, str(named_run("en-vi")), "auto", "float32")
    monkeypatch.undo()
    monkeypatch.chdir(here)
    pytest.importorskip("ctranslate2")
    assert serving.load(*loaded).search.find.__module__ == "nmt.exports.ctranslate2_model"


def test_what_cannot_be_measured_is_refused(here: Path, source: str, tmp_path: Path) -> None:
    with pytest.raises(Mistake, match="File not found"):
        serving.run(options("maps_luong", str(tmp_path / "none")))
    for levels in ("0", "1,x", ""):
        with pytest.raises(Mistake, match=r"--levels is .*; it must be numbers of clients, such as 1,8,64,256"):
            serving.run(options("maps_luong", source, "--levels", levels))
    with pytest.raises(Mistake, match=r"--rounds is 0, --seconds 10\.0; both must be above 0"):
        serving.run(options("maps_luong", source, "--rounds", "0"))
    with pytest.raises(Mistake, match=r"--beside is other; write NAME=PORT, such as LibreTranslate=5000"):
        serving.run(options("maps_luong", source, "--beside", "other"))
    with pytest.raises(Mistake, match=r"--set is engine; write KEY=VALUE, such as engine=torch"):
        serving.run(options("maps_luong", source, "--set", "engine"))
