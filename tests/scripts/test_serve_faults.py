"""scripts/studies/serve_faults.py: each fault with the real server of a tiny run, and the verdict on a server that is
worse.

A row's verdict may depend on seconds, so with the real server these tests read its text.
"""

import asyncio
import signal
import time
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from urllib.request import Request, urlopen

import pytest

from nmt.errors import Mistake
from nmt.runs.included import included_models
from scripts.server import server
from scripts.studies import serve_faults as script

ANSWER = b'{"translatedText": "x"}'


def http(status, body):
    return b"HTTP/1.1 %d X\r\ncontent-length: %d\r\n\r\n%s" % (status, len(body), body)


@asynccontextmanager
async def answering(reply):
    """A server that sends reply(path) to each request and closes the connection if it is not whole; its port."""

    handlers = set()

    async def handle(reader, writer):
        handlers.add(asyncio.current_task())
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = [
                    int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.startswith(b"content-length")
                ]
                await reader.readexactly(*(length or [0]))
                text = reply(head.split()[1].decode())
                writer.write(text)
                await writer.drain()
                if not text.endswith(b"}"):
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    listening = await asyncio.start_server(handle, "127.0.0.1", 0)
    async with listening:
        yield listening.sockets[0].getsockname()[1]
        # A connection that outlives the event loop is a warning in another test.
        for handler in handlers:
            handler.cancel()
        await asyncio.gather(*handlers, return_exceptions=True)


@pytest.mark.soak
def test_the_real_server_bears_every_fault(here: Path, tmp_path: Path):
    async def faults(one):
        found = [await script.killed_streams(one.port, 2)]
        found += [await script.huge_body(one.port, kind) for kind in ("length", "chunks")]
        found.append(await script.slow_bodies(one.port, 2, 1))
        found.append(await script.idle(one.port, 3))
        counts, waiting = await script.statuses(one.port), await script.load(one.port)
        crowd = await script.crowded(one, 1, 2, 3)
        return found, counts, waiting, crowd, await script.terminated(one, 2)

    with server(Path("maps_luong"), tmp_path / "log", "device=cpu", "time_limit=1") as one:
        rows, counts, waiting, crowd, last = asyncio.run(faults(one))
    killed, length, chunks, slow, idle = rows
    assert killed[0] == "2 clients die while they receive a stream"
    assert killed[1].startswith("2 killed in the middle; then 200 in ")
    assert length[1].startswith("413 after ")
    assert chunks[1].startswith("413 after ")
    assert length[2] is chunks[2] is True
    assert slow[1].startswith("200 in ")
    assert "; [408] after " in slow[1]
    assert idle[:1] == ("3 idle connections",)
    assert idle[1].startswith("200 in ")
    assert crowd.unanswered == 0 < min(crowd.asked, crowd.slowest, crowd.most)
    assert "500" not in counts
    assert counts["408"] == 2
    assert waiting == 0
    assert last[2] is True, last
    assert last[1].endswith(" 0 half, 0 wrong; exit code 143")
    assert "Traceback" not in (tmp_path / "log").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("crowd", "after", "bytes_", "good"),
    [
        (script.Crowd(0.5, 0, 9, 900.0), 109.0, 100, [True, True, True]),
        (script.Crowd(0.5, 1, 9, 900.0), 109.0, 100, [False, True, True]),
        (script.Crowd(1.5, 0, 9, 900.0), 109.0, 100, [False, True, True]),
        (script.Crowd(0.5, 0, 9, 900.0), 111.0, 100, [True, False, True]),
        (script.Crowd(0.5, 0, 9, 900.0), 109.0, 2_000_000, [True, True, False]),
    ],
)
def test_a_crowd_must_not_stop_the_server(tmp_path, monkeypatch, no_pause, crowd, after, bytes_, good):
    log = tmp_path / "log"
    one = SimpleNamespace(port=1, memory=100.0)

    @contextmanager
    def started(run, log, descriptors):
        assert descriptors == 256
        yield one

    async def crowded(one, seconds, streams, halves):
        one.memory = after
        log.write_bytes(bytes(bytes_))
        return crowd

    async def once(port):
        return 200, b""

    async def read_streams(port, number):
        pass

    for function in (crowded, once, read_streams):
        monkeypatch.setattr(script, function.__name__, function)
    monkeypatch.setattr(script, "server", started)

    async def rows():
        return [row async for row in script.crowd(Path("run"), log, 60)]

    found = asyncio.run(rows())
    assert [row[2] for row in found] == good
    assert found[0][0] == "100 unread streams and 400 half requests for 60 s: /health"


PLANTED = """
from nmt.serving import batcher, lab


def unpacked(*_, **__):
    hidden, cell = 1, 2, 3


batcher.Batcher._translated = lab.watched_search = unpacked
"""


@pytest.mark.soak
def test_a_server_with_a_bug_fails(here: Path, tmp_path: Path, monkeypatch):
    """Wrong unpacking is a ValueError, as a user's mistake is; only the latter may be answered with 400."""
    (tmp_path / "sitecustomize.py").write_text(PLANTED)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{Path(script.__file__).parents[2]}")

    async def asked(port):
        status, _ = await script.once(port)
        # Read to its end: the server abandons a stream whose reader has gone, and then nothing fails.
        headers = {"Content-Type": "application/json"}
        stream = Request(f"http://127.0.0.1:{port}/v1/translate/stream", b'{"text": "one two."}', headers)
        events = await asyncio.to_thread(lambda: urlopen(stream, timeout=60).read())
        assert b"event: error" in events
        return status, await script.defects(port)

    with server(Path("maps_luong"), tmp_path / "log", "device=cpu") as one:
        answered, row = asyncio.run(asked(one.port))
        # The traceback of a stream is logged after its last event has been sent.
        patience = time.monotonic() + 60
        while not script.logged(tmp_path / "log")[1].endswith(", 2 tracebacks") and time.monotonic() < patience:
            time.sleep(0.1)
    assert answered == 500
    assert row == ("all of these", "1 x 500", False)
    what, text, good = script.logged(tmp_path / "log")
    assert (what, good) == ("the server's log", False)
    assert text.endswith(", 2 tracebacks")


def test_a_server_that_reads_everything_fails_on_a_huge_body(monkeypatch):
    monkeypatch.setattr(script, "HUGE", 1_000_000)

    async def tried(status):
        async with answering(lambda path: http(status, b'{"error": "too large"}')) as port:
            return await script.huge_body(port, "length")

    # Both answer only after all has been sent, and a status other than 413 is wrong too.
    for status in (200, 413):
        what, text, good = asyncio.run(tried(status))
        assert (what, good) == ("100 MB with content-length", False)
        assert text.startswith(f"{status} after ")


class Process:
    """Ends with an exit code; a signal sets `signals`."""

    def __init__(self, code):
        self.code, self.signals = code, []

    def send_signal(self, number):
        self.signals.append(number)

    def wait(self, timeout):
        return self.code


@pytest.fixture
def no_pause(monkeypatch):
    """Pauses of the script take 0.1 s."""
    pause = asyncio.sleep
    monkeypatch.setattr(script.asyncio, "sleep", lambda seconds: pause(0.1))


@pytest.mark.parametrize(
    ("last", "code", "expected"),
    [
        (b"", 143, "0 half, 0 wrong; exit code 143"),
        (http(200, ANSWER)[:-3], 143, "1 half, 0 wrong; exit code 143"),
        (b"", 0, "0 half, 0 wrong; exit code 0"),
        (http(503, b"{}"), 143, "0 half, 1 wrong; exit code 143"),
    ],
    ids=["whole", "half an answer", "wrong exit code", "an error"],
)
def test_what_has_begun_must_be_answered_whole(no_pause, last, code, expected):
    process = Process(code)

    async def tried():
        waiting = iter([last, b""])

        def reply(path):
            if not process.signals:
                return http(200, ANSWER)
            return http(200, ANSWER) if next(after, None) else next(waiting)

        after = iter([True])
        async with answering(reply) as port:
            return await script.terminated(SimpleNamespace(port=port, process=process), 1)

    what, text, good = asyncio.run(tried())
    assert what == "SIGTERM while 1 clients wait"
    assert text.endswith(expected)
    assert process.signals == [signal.SIGTERM]
    assert good == (expected == "0 half, 0 wrong; exit code 143")


def run_directory(tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    (run / "metrics.json").write_text("{}", encoding="utf-8")
    (run / "model.safetensors").write_bytes(bytes(5000))
    return run


def replacements(run, monkeypatch, answer):
    """The rows of `replaced`, and for each request the size of the weights, or -1 without a run directory."""
    sizes = []

    async def once(port):
        weights = run / "model.safetensors"
        sizes.append(weights.stat().st_size if weights.exists() else -1)
        return answer(sizes[-1]), b""

    async def all_rows():
        return [await script._known(row) async for row in script.replaced(1, run)]

    monkeypatch.setattr(script, "once", once)
    return asyncio.run(all_rows()), sizes


def test_the_run_directory_is_replaced_damaged_mended_removed_and_put_back(tmp_path, monkeypatch, no_pause):
    rows, sizes = replacements(run_directory(tmp_path), monkeypatch, lambda size: 200)
    assert [row[2] for row in rows] == [True] * 5
    changes = [(5000, 5000), (5000, 1000), (1000, 5000), (5000, -1), (5000, 5000)]
    assert sizes == [size for before, after in changes for size in [before] * 2 + [after] * 4]
    assert (tmp_path / "run" / "metrics.json").is_file()


def test_a_server_that_serves_only_a_whole_run_fails(tmp_path, monkeypatch, no_pause):
    rows, _ = replacements(run_directory(tmp_path), monkeypatch, lambda size: 200 if size == 5000 else 500)
    assert [row[1:] for row in rows[:2]] == [
        ("200, 200, 200, 200, 200, 200", True),
        ("200, 200, 500, 500, 500, 500", False),
    ]
    assert [row[2] for row in rows] == [True, False, False, False, True]


@pytest.mark.parametrize(
    ("code", "after", "good"),
    [
        (0, {"400": 30, "200": 5}, True),
        (1, {"400": 30, "200": 5}, False),
        (0, {"400": 30, "500": 1}, False),
        (0, {"400": 9, "200": 5}, False),
    ],
    ids=["passed", "a check failed", "status 500", "too few requests"],
)
def test_fuzzed_requests_must_be_enough_and_without_an_error_of_the_server(tmp_path, monkeypatch, code, after, good):
    command = tmp_path / "st"
    command.write_text(f"#!/bin/sh\necho $@ > given\nexit {code}\n", encoding="utf-8")
    command.chmod(0o755)
    counts = iter([{"200": 5}, after])

    async def statuses(port):
        return next(counts)

    monkeypatch.setattr(script, "statuses", statuses)
    what, text, found = asyncio.run(script.fuzzed(80, command, 20, tmp_path))
    assert (what, found) == ("20 fuzzed requests", good)
    assert text == ", ".join(f"{n} x {status}" for status, n in sorted(after.items()) if status != "200")
    # 20 requests for 9 operations: 3 for each.
    assert " -n 3 " in (tmp_path / "given").read_text(encoding="utf-8")
    assert "http://127.0.0.1:80/openapi.json" in (tmp_path / "given").read_text(encoding="utf-8")


def test_a_traceback_in_the_log_is_a_failure(tmp_path):
    log = tmp_path / "log"
    log.write_text("started\n", encoding="utf-8")
    assert script.logged(log) == ("the server's log", "1 lines, 0 tracebacks", True)
    log.write_text("started\nTraceback (most recent call last):\nValueError\n", encoding="utf-8")
    assert script.logged(log) == ("the server's log", "3 lines, 1 tracebacks", False)


def test_a_status_500_is_a_failure():
    async def found(status):
        page = b'nmt_requests_total{path="/translate",status="%d"} 2.0\n' % status
        async with answering(lambda path: http(200, page)) as port:
            return await script.defects(port)

    assert asyncio.run(found(500)) == ("all of these", "2 x 500", False)
    assert asyncio.run(found(400)) == ("all of these", "0 x 500", True)


def test_metrics_are_summed_up_by_status():
    page = b"""nmt_queue_load 0.25
nmt_requests_total{path="/translate",status="200"} 7.0
nmt_requests_total{path="/detect",status="200"} 2.0
nmt_requests_total{path="/translate",status="413"} 1.0
"""

    async def read():
        async with answering(lambda path: http(200, page)) as port:
            return await script.statuses(port), await script.load(port)

    assert asyncio.run(read()) == ({"200": 9, "413": 1}, 0.25)


def test_the_exit_code_says_whether_all_passed(monkeypatch):
    monkeypatch.setattr(script.resource, "setrlimit", lambda which, limits: None)
    monkeypatch.setattr("sys.argv", ["serve_faults", "en-vi"])
    for verdicts, code in (((True, True), 0), ((True, False), 1)):

        async def everything(options, folder, verdicts=verdicts):
            assert options.run == included_models()["en-vi"]
            return [("what", "text", good) for good in verdicts]

        monkeypatch.setattr(script, "everything", everything)
        with pytest.raises(SystemExit) as ended:
            script.main()
        assert ended.value.code == code


def test_a_run_that_is_not_there_is_a_mistake(monkeypatch, tmp_path):
    monkeypatch.setattr(script.resource, "setrlimit", lambda which, limits: None)
    monkeypatch.setattr("sys.argv", ["serve_faults", str(tmp_path / "gone")])
    with pytest.raises(Mistake, match=r"There is no folder .*gone; name the folder that training printed, or a model"):
        script.main()
