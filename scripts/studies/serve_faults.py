"""Test what can go wrong around a server: clients that die, malformed requests, huge or slow bodies, idle connections,
clients that never read, more connections than the process has descriptors, SIGTERM under load, and a run directory that
is replaced and removed.

    pip install schemathesis          in a separate environment, if its dependencies conflict with ours
    python -m scripts.studies.serve_faults runs/demo --schemathesis PATH/bin/st

Starts nmt.serve on a copy of the run. Prints one row per fault, and exits with 1 if one of them caused status 500, an
incomplete answer, a traceback in the log, or a memory leak. Without --schemathesis, no requests are fuzzed. Linux only;
takes about ten minutes.
"""

import argparse
import asyncio
import json
import math
import multiprocessing
import re
import resource
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from nmt.runs.directory import RunDirectory
from nmt.runs.included import named_run
from scripts.mistakes import report_mistakes
from scripts.server import Connection, Server, server

ASKED = {"q": "How old is Mai? Lan likes the old house.", "source": "en", "target": "vi"}
HUGE = 100_000_000
GROWTH = 1.2
"""After all faults, the server may use at most this many times the memory that it used after warming up."""
CROWD_GROWTH = 1.1
"""The same for a server whose clients do not read, and send half of their requests."""
PATIENCE = 10.0
"""Seconds after which a client gives up."""
CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
_SENTENCE = json.dumps({"text": "a " * 90, "beam_size": 100}).encode()
STREAM = (
    b"POST /v1/translate/stream HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    b"content-length: %d\r\n\r\n%s" % (len(_SENTENCE), _SENTENCE)
)
"""A request whose answer is large."""
Row = tuple[str, str, bool]
"""The fault, its result, and whether the result is as expected."""


async def once(port: int, path: str = "/translate", fields: object = ASKED) -> tuple[int, bytes]:
    """The answer to one request on a separate connection."""
    connection = Connection(port)
    try:
        return await connection.ask(path, fields)
    finally:
        connection.close()


async def load(port: int) -> float:
    """How full the server's queue is, as /metrics reports it."""
    _, text = await once(port, "/metrics", None)
    return float(re.search(rb"^nmt_queue_load (.*)$", text, re.MULTILINE)[1])  # type: ignore[index]


async def statuses(port: int) -> dict[str, int]:
    """How many requests were answered with each status."""
    _, text = await once(port, "/metrics", None)
    counts: dict[str, int] = {}
    for status, number in re.findall(rb'^nmt_requests_total\{.*status="(\d+)"\} (.*)$', text, re.MULTILINE):
        counts[status.decode()] = counts.get(status.decode(), 0) + int(float(number))
    return counts


async def killed_streams(port: int, number: int) -> Row:
    """Clients that die after the first event of a stream."""
    seen = 0
    for _ in range(number):
        connection = Connection(port)
        reader, writer = await connection.open()
        body = json.dumps({"text": " ".join([ASKED["q"]] * 5)}).encode()
        writer.write(b"POST /v1/translate/stream HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n")
        writer.write(b"content-length: %d\r\n\r\n%s" % (len(body), body))
        await reader.readuntil(b"event: beams")
        seen += 1
        connection.close(abruptly=True)
    began = time.perf_counter()
    status, _ = await once(port)
    seconds, waiting = time.perf_counter() - began, await load(port)
    text = f"{seen} killed in the middle; then {status} in {seconds:.2f} s, {waiting:.0%} waiting"
    return f"{number} clients die while they receive a stream", text, (status, waiting) == (200, 0) and seconds < 5


async def fuzzed(port: int, command: Path, number: int, folder: Path) -> Row:
    """Malformed requests that schemathesis generates from the server's OpenAPI description."""
    before = await statuses(port)
    operations = 9  # those that take fields, which can therefore be wrong
    schemathesis = await asyncio.create_subprocess_exec(
        *(str(command), "run", f"http://127.0.0.1:{port}/openapi.json", "--checks", CHECKS, "--mode", "negative"),
        *("--phases", "coverage,fuzzing", "-n", str(-(-number // operations)), "--continue-on-failure", "--no-shrink"),
        *("--workers", "2", "--request-timeout", "60", "--suppress-health-check", "all"),
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    output, _ = await schemathesis.communicate()
    after = await statuses(port)
    counts = {status: after[status] - before.get(status, 0) for status in sorted(after)}
    text = ", ".join(f"{count} x {status}" for status, count in counts.items() if count)
    if schemathesis.returncode:
        print(output.decode()[-6000:], file=sys.stderr)
    good = schemathesis.returncode == 0 and not counts.get("500") and sum(counts.values()) >= number
    return f"{number} fuzzed requests", text, good


async def huge_body(port: int, kind: str, limit: float = 30) -> Row:
    """A body of 100 MB, with its length or in chunks."""
    connection = Connection(port)
    reader, writer = await connection.open()
    length = b"content-length: %d" % HUGE if kind == "length" else b"transfer-encoding: chunked"
    writer.write(
        b"POST /translate HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n%s\r\n\r\n" % length
    )
    part = b"x" * 100_000
    sent = 0

    async def send() -> None:
        nonlocal sent
        for _ in range(HUGE // len(part)):
            writer.write(part if kind == "length" else b"%x\r\n%s\r\n" % (len(part), part))
            await writer.drain()
            await asyncio.sleep(0)  # drain returns at once while the server reads fast; let the answer arrive
            sent += len(part)

    sending = asyncio.ensure_future(send())
    try:
        status, body = await asyncio.wait_for(connection.answer(reader), limit)
        text = f"{status} after {sent / 1e6:.1f} MB were sent"
        good = status == 413 and b'"error"' in body and sent < HUGE / 5
    except (ConnectionError, TimeoutError) as error:
        text, good = f"{type(error).__name__} after {sent / 1e6:.1f} MB", False
    sending.cancel()
    await asyncio.gather(sending, return_exceptions=True)
    connection.close(abruptly=True)
    return f"100 MB with {'content-length' if kind == 'length' else 'chunks'}", text, good


async def slow_bodies(port: int, number: int, time_limit: float) -> Row:
    """Bodies that arrive at one byte per second, and a normal request meanwhile."""
    head = (
        b"POST /translate HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n"
    )

    async def slow() -> int:
        connection = Connection(port)
        reader, writer = await connection.open()
        writer.write(head)
        answer = asyncio.ensure_future(connection.answer(reader))
        while not answer.done():
            writer.write(b" ")
            await asyncio.wait([answer], timeout=1)
        connection.close()
        return (await answer)[0]

    began = time.perf_counter()
    everyone = [asyncio.ensure_future(slow()) for _ in range(number)]
    await asyncio.sleep(1)
    asked = time.perf_counter()
    status, _ = await once(port)
    seconds = time.perf_counter() - asked
    try:
        statuses = set(await asyncio.wait_for(asyncio.gather(*everyone), 3 * time_limit))
        text = f"{status} in {seconds:.2f} s meanwhile; {sorted(statuses)} after {time.perf_counter() - began:.0f} s"
        good = status == 200 and seconds < 5 and statuses == {408}
    except TimeoutError:
        text, good = f"{status} in {seconds:.2f} s meanwhile; they never end", False
    return f"{number} slow bodies", text, good


async def idle(port: int, number: int) -> Row:
    """Connections that send nothing, and a normal request meanwhile."""
    everyone = [Connection(port) for _ in range(number)]
    await asyncio.gather(*(connection.open() for connection in everyone))
    began = time.perf_counter()
    status, _ = await once(port)
    seconds = time.perf_counter() - began
    for connection in everyone:
        connection.close()
    await asyncio.sleep(1)
    return f"{number} idle connections", f"{status} in {seconds:.2f} s", status == 200 and seconds < 5


async def replaced(port: int, run: Path) -> AsyncIterator[Row]:
    """The run directory is replaced by another run, damaged, mended, and removed, while requests arrive."""

    async def change(what: str, action: Callable[[], object], expected: set[int]) -> Row:
        statuses: list[int] = []
        for step in range(6):
            if step == 2:
                action()
            if step == 4:
                await asyncio.sleep(2.5)  # until the next attempt to load it
            statuses.append((await once(port))[0])
        text = ", ".join(map(str, statuses))
        return what, text, set(statuses[:2]) == {200} and set(statuses[2:]) == expected

    spare, away = run.with_name("spare"), run.with_name("away")
    metrics, weights = run / "metrics.json", run / "model.safetensors"
    whole = weights.read_bytes()

    def touch() -> None:
        metrics.write_text(metrics.read_text(encoding="utf-8") + "\n", encoding="utf-8")

    def replace() -> None:
        shutil.copytree(run, spare)
        (spare / "metrics.json").write_text(metrics.read_text(encoding="utf-8") + "\n", encoding="utf-8")
        run.rename(away)
        spare.rename(run)

    def damage() -> None:
        weights.write_bytes(whole[:1000])
        touch()

    def mend() -> None:
        weights.write_bytes(whole)
        touch()

    yield await change("the run directory is replaced", replace, {200})
    yield await change("its weights are cut off", damage, {200})
    yield await change("they are mended", mend, {200})
    yield await change("it is removed", lambda: shutil.rmtree(run), {200})
    away.rename(run)
    yield await change("it is put back", lambda: None, {200})


async def terminated(one: Server, clients: int) -> Row:
    """SIGTERM while requests are being answered: each answer that has begun must be complete."""
    whole, halves, refused, wrong = 0, 0, 0, 0

    async def client() -> None:
        nonlocal whole, halves, refused, wrong
        connection = Connection(one.port)
        while True:
            try:
                status, body = await connection.ask("/translate", ASKED)
            except ConnectionError:
                halves += connection.received > 0
                refused += connection.received == 0
                connection.close()
                return
            wrong += status != 200 or "translatedText" not in json.loads(body)
            whole += 1

    everyone = [asyncio.ensure_future(client()) for _ in range(clients)]
    await asyncio.sleep(3)
    before = whole
    one.process.send_signal(signal.SIGTERM)
    await asyncio.gather(*everyone)
    code = await asyncio.to_thread(one.process.wait, 60)
    text = f"{whole} whole ({whole - before} after the signal), {halves} half, {wrong} wrong; exit code {code}"
    good = (halves, wrong, code) == (0, 0, 143) and whole > before
    return f"SIGTERM while {clients} clients wait", text, good


class Crowd(NamedTuple):
    """What a server did while clients crowded it."""

    slowest: float
    """Seconds until the slowest answer of /health, which had to arrive within `PATIENCE`."""
    unanswered: int
    """How many requests for /health were not answered with 200."""
    asked: int
    most: float
    """Largest resident memory, in MiB."""


def crowding(port: int, seconds: float, streams: int, halves: int) -> None:
    """Clients that read nothing and clients that stop in the middle of their headers, each replaced when it is
    disconnected.
    """
    until = time.monotonic() + seconds

    async def hold(request: bytes, longest: float) -> None:
        """Sends the beginning of a request, and never reads."""
        loop = asyncio.get_running_loop()
        while time.monotonic() < until:
            with socket.socket() as client:
                client.setblocking(False)
                client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                try:
                    async with asyncio.timeout(PATIENCE):
                        await loop.sock_connect(client, ("127.0.0.1", port))
                        await loop.sock_sendall(client, request)
                except OSError:  # a TimeoutError too
                    await asyncio.sleep(0.5)
                    continue
                poll = select.poll()
                poll.register(client, select.POLLRDHUP)
                since = time.monotonic()
                while time.monotonic() < min(until, since + longest) and not poll.poll(0):
                    await asyncio.sleep(0.5)

    async def everyone() -> None:
        clients = [hold(STREAM, 30) for _ in range(streams)]
        await asyncio.gather(*clients, *(hold(b"GET /hea", math.inf) for _ in range(halves)))

    asyncio.run(everyone())


async def crowded(one: Server, seconds: float, streams: int, halves: int) -> Crowd:
    """What a server does while another process crowds it, asked on new connections."""
    slowest, unanswered, asked, most = 0.0, 0, 0, 0.0
    # Another process, because this one would answer late for itself.
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        attack = pool.submit(crowding, one.port, seconds, streams, halves)
        while not attack.done():
            began = time.monotonic()
            asked += 1
            try:
                async with asyncio.timeout(PATIENCE):
                    status, _ = await once(one.port, "/health", None)
                unanswered += status != 200
            except OSError:
                unanswered += 1
            slowest, most = max(slowest, time.monotonic() - began), max(most, one.memory)
            await asyncio.sleep(0.2)
        attack.result()
    return Crowd(slowest, unanswered, asked, most)


async def read_streams(port: int, number: int) -> None:
    """Streams that are read to their end."""
    for _ in range(number):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(STREAM.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n"))
        await reader.read()
        writer.close()


async def crowd(run: Path, log: Path, seconds: float, streams: int = 100, halves: int = 400) -> AsyncIterator[Row]:
    """The same, with a server that may open 256 files."""
    with server(run, log, descriptors=256) as one:
        await read_streams(one.port, 3)  # warm
        warm = one.memory
        crowd = await crowded(one, seconds, streams, halves)
        await asyncio.sleep(15)
        after, (status, _) = one.memory, await once(one.port)
    what = f"{streams} unread streams and {halves} half requests for {seconds:.0f} s"
    text = f"{crowd.unanswered} of {crowd.asked} unanswered, the slowest in {crowd.slowest:.2f} s; then {status}"
    yield f"{what}: /health", text, not crowd.unanswered and crowd.slowest < 1 and status == 200
    text = f"{warm:.0f} MiB warm, at most {crowd.most:.0f}, {after:.0f} after"
    yield f"{what}: memory", text, after < CROWD_GROWTH * warm
    size = log.stat().st_size
    yield f"{what}: log", f"{size / 1e6:.3f} MB", size < 1_000_000


async def defects(port: int) -> Row:
    """How many requests ended in an error that is not the client's. The server answers 400 only to a `Mistake`."""
    failures = (await statuses(port)).get("500", 0)
    return "all of these", f"{failures} x 500", failures == 0


def logged(log: Path) -> Row:
    """How many tracebacks the server wrote. A stream answers 200 before it fails, so only the log shows its defects."""
    written = log.read_text(encoding="utf-8")
    lines, tracebacks = written.count("\n"), written.count("Traceback")
    return "the server's log", f"{lines} lines, {tracebacks} tracebacks", tracebacks == 0


async def everything(options: argparse.Namespace, folder: Path) -> list[Row]:
    run, log = folder / "run", folder / "log"
    shutil.copytree(options.run, run, ignore=shutil.ignore_patterns("checkpoints"))
    rows: list[Row] = []

    async def report(row: Awaitable[Row]) -> None:
        rows.append(await row)
        what, text, good = rows[-1]
        print(f"| {what} | {text} | {'passed' if good else 'FAILED'} |", flush=True)

    time_limit = 10
    print("| fault | result | |\n|---|---|---|")
    async for row in crowd(run, folder / "crowd.log", options.crowd):
        await report(_known(row))
    with server(run, log, f"time_limit={time_limit}") as one:
        changes, most = [{"way": "uniform"}], {"text": "a " * 99, "target": "a " * 99}
        for fields in [{"text": ASKED["q"]}] * 50 + [most] * 5:  # warm; the last are as large as a question may be
            await once(one.port)
            await once(one.port, "/detect", ASKED)
            await once(one.port, "/v1/intervene", {**fields, "changes": changes})
        warm = one.memory
        await report(killed_streams(one.port, 50))
        for kind in ("length", "chunks"):
            await report(huge_body(one.port, kind))
        await report(slow_bodies(one.port, 50, time_limit))
        await report(idle(one.port, 1000))
        async for row in replaced(one.port, run):
            await report(_known(row))
        if options.schemathesis:
            await report(fuzzed(one.port, options.schemathesis.absolute(), options.requests, folder))
        await report(defects(one.port))
        text = f"{warm:.0f} MiB warm, {one.memory:.0f} MiB after"
        await report(_known(("memory", text, one.memory < GROWTH * warm)))
        await report(terminated(one, 32))
    await report(_known(logged(log)))
    if not rows[-1][-1]:
        print(log.read_text(encoding="utf-8")[-6000:], file=sys.stderr)
    return rows


async def _known(row: Row) -> Row:
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="a finished run from English to Vietnamese, such as en-vi")
    parser.add_argument("--schemathesis", type=Path, metavar="COMMAND", help="its command, st")
    parser.add_argument("--requests", type=int, default=10_000, help="fuzzed requests (default: %(default)s)")
    parser.add_argument("--crowd", type=float, default=60, metavar="SECONDS", help="of a crowd (default: %(default)s)")
    options = parser.parse_args()
    options.run = named_run(options.run)
    RunDirectory(options.run).require_finished()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))  # for our connections
    with TemporaryDirectory() as name:
        rows = asyncio.run(everything(options, Path(name)))
    sys.exit(not all(good for _, _, good in rows))


if __name__ == "__main__":
    report_mistakes(main)
