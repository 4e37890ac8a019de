"""scripts/server.py and scripts/bench/serving.py, with the real server of a tiny run."""

import asyncio
import json
from argparse import ArgumentParser, Namespace
from pathlib import Path

import pytest

from nmt.errors import Mistake
from scripts.bench import serving
from scripts.server import Connection, server


def options(*given: str) -> Namespace:
    parser = ArgumentParser()
    serving.add_arguments(parser)
    return parser.parse_args(given)


@pytest.fixture
def source(tmp_path: Path) -> str:
    file = tmp_path / "in.en"
    file.write_text("one two three .\none two .\n", encoding="utf-8")
    return str(file)


def test_a_server_runs_until_the_end_of_the_block(here: Path, tmp_path: Path) -> None:
    async def asked(port: int) -> list[tuple[int, bytes]]:
        connection = Connection(port)
        fields = {"q": "one two .", "source": "en", "target": "vi"}
        answers = [await connection.ask("/health"), await connection.ask("/translate", fields)]
        connection.close(abruptly=True)
        return answers

    with server(Path("maps_luong"), tmp_path / "log", "device=cpu") as one:
        (status, health), (translated, body) = asyncio.run(asked(one.port))
        assert (status, translated, json.loads(health)) == (200, 200, {"status": "ok"})
        assert isinstance(json.loads(body)["translatedText"], str)
        assert one.memory > 1
        assert one.cpu_seconds > 0
    assert one.process.returncode == 143
    with (
        pytest.raises(Mistake, match=r"The server did not start: .*port"),
        server(Path("maps_luong"), tmp_path / "log", "port=99999"),
    ):
        pass


def test_every_system_is_measured_at_every_level(here: Path, source: str) -> None:
    given = options("maps_luong", source, "--levels", "1,3", "--rounds", "2", "--seconds", "0.1", "--plain")
    record = serving.run(given)
    assert json.loads(json.dumps(record["systems"]["nmt.serve"]))
    assert list(record["systems"]) == ["nmt.translate", "nmt.serve", "plain FastAPI"]
    for levels in record["systems"].values():
        assert {clients: len(rounds) for clients, rounds in levels.items()} == {1: 2, 3: 2}
        assert all(each["rate"] > 0 for rounds in levels.values() for each in rounds)
    rows = serving.table(record).splitlines()
    assert sum(row.startswith(("| nmt.serve | ", "| plain FastAPI | ")) for row in rows) == 4


def test_a_server_that_runs_already_is_measured_beside_it(here: Path, source: str, tmp_path: Path) -> None:
    with server(Path("maps_luong"), tmp_path / "log", "device=cpu") as other:
        beside = f"the other={other.port}"
        record = serving.run(
            options("maps_luong", source, "--levels=2", "--rounds=1", "--seconds=0.1", "--beside", beside)
        )
    assert list(record["systems"]) == ["nmt.translate", "nmt.serve", "the other"]
    [row] = [row for row in serving.table(record).splitlines() if row.startswith("| the other | 2 | ")]
    assert "nan" not in row
    with pytest.raises(Mistake, match=r"--beside is other; write NAME=PORT, such as LibreTranslate=5000"):
        serving.run(options("maps_luong", source, "--beside", "other"))


def test_an_engine_is_used_by_all_of_our_systems(here: Path, source: str) -> None:
    pytest.importorskip("ctranslate2")
    given = ("--levels=1", "--rounds=1", "--seconds=0.1", "--plain", "--set=engine=ctranslate2")
    record = serving.run(options("maps_transformer", source, *given))
    assert all(each["rate"] > 0 for levels in record["systems"].values() for each in levels[1])


def test_what_cannot_be_measured_is_refused(here: Path, source: str, tmp_path: Path) -> None:
    with pytest.raises(Mistake, match="File not found"):
        serving.run(options("maps_luong", str(tmp_path / "none")))
    for levels in ("0", "1,x", ""):
        with pytest.raises(Mistake, match=r"--levels is .*; it must be numbers of clients, such as 1,8,64,256"):
            serving.run(options("maps_luong", source, "--levels", levels))
    with pytest.raises(Mistake, match=r"--rounds is 0, --seconds 10\.0; both must be above 0"):
        serving.run(options("maps_luong", source, "--rounds", "0"))
