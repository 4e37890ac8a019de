"""The limits on what clients hold: connections, unfinished headers and unread answers."""

import asyncio
import json
import logging
import socket
import sys
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest

from nmt.serving import connections as module
from nmt.serving.connections import Connections, LimitedServer, Seldom, possible_connections

GET = b"GET /%s HTTP/1.1\r\nhost: localhost\r\n\r\n"
BIG = 20_000_000
Client = Callable[..., Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]


def with_server(action: Callable[[LimitedServer, Client, list[str]], Awaitable[None]], most: int = 4) -> None:
    """Runs an action with a server, a function that connects and sends, and the paths whose requests have ended."""
    ended: list[str] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        try:
            if scope["type"] != "http":
                return
            await receive()
            await send({"type": "http.response.start", "status": 200, "headers": []})
            if scope["path"] == "/stream":
                for _ in range(1000):
                    await send({"type": "http.response.body", "body": bytes(100_000), "more_body": True})
            if scope["path"] == "/waits":
                assert (await receive())["type"] == "http.disconnect"
            await send({"type": "http.response.body", "body": bytes(BIG if scope["path"] == "/big" else 2)})
        finally:
            ended.append(scope.get("path", ""))

    async def run() -> None:
        listening = socket.create_server(("127.0.0.1", 0))
        server = LimitedServer(app, Connections(most, seconds=60.0), 1, lifespan="off")
        serving = asyncio.ensure_future(server.serve(sockets=[listening]))
        writers: list[asyncio.StreamWriter] = []

        async def connect(data: bytes, limit: int = 1000) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
            reader, writer = await asyncio.open_connection(*listening.getsockname(), limit=limit)
            writers.append(writer)
            writer.write(data)
            return reader, writer

        while not server.started:
            await asyncio.sleep(0.01)
        try:
            async with asyncio.timeout(30):
                await action(server, connect, ended)
        finally:
            for writer in writers:
                writer.transport.abort()
            server.should_exit = True
            await serving

    asyncio.run(run())


@pytest.fixture(autouse=True)
def checks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server checks its limits at once."""
    monkeypatch.setattr(module, "_SECONDS_BETWEEN_CHECKS", 0.02)


async def closed(reader: asyncio.StreamReader) -> bytes:
    """What arrived until the server closed the connection."""
    data = b""
    try:
        while part := await reader.read(100_000):
            data += part
    except ConnectionResetError:
        pass
    return data


def test_half_a_header_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "HEADER_SECONDS", 0.2)

    async def action(server: LimitedServer, connect: Client, ended: list[str]) -> None:
        silent, _ = await connect(b"")
        half, _ = await connect(b"GET /hea")
        await connect(GET % b"waits")
        slow, writer = await connect(GET % b"ok" + b"GET ")

        async def one_byte_at_a_time() -> None:
            while True:
                writer.write(b"x")
                await asyncio.sleep(0.01)

        sending = asyncio.ensure_future(one_byte_at_a_time())
        assert await closed(silent) == await closed(half) == b""
        assert (await closed(slow)).startswith(b"HTTP/1.1 200 OK")
        sending.cancel()
        assert len(server.table.open) == 1, "a request that is being answered has other limits"
        assert ended == ["/ok"]

    with_server(action)


def test_a_full_table_closes_who_has_waited_longest() -> None:
    async def action(server: LimitedServer, connect: Client, ended: list[str]) -> None:
        busy, _ = await connect(GET % b"waits")
        halves = [(await connect(b"GET /hea"))[0] for _ in range(6)]
        answered, _ = await connect(GET % b"ok")
        assert (await answered.readline()) == b"HTTP/1.1 200 OK\r\n"
        for half in halves[:4]:
            assert await closed(half) == b""
        assert [half.at_eof() for half in halves[4:]] == [False, False]
        assert len(server.table.open) == 4
        more = [(await connect(GET % b"waits"))[0] for _ in range(3)]
        refused, _ = await connect(GET % b"ok")
        assert await closed(refused) == b"", "every connection has a request"
        assert not any(reader.at_eof() for reader in [busy, *more])

    with_server(action)


def test_connections_that_come_at_once_exceed_the_table_by_few() -> None:
    async def action(server: LimitedServer, connect: Client, ended: list[str]) -> None:
        sockets = [socket.create_connection(server.servers[0].sockets[0].getsockname()) for _ in range(200)]
        most = 0
        while most < 20 or len(server.server_state.connections) > 20:
            most = max(most, len(server.server_state.connections))
            await asyncio.sleep(0)
        assert most <= 20 + 4 * module._ACCEPTED_AT_ONCE
        answered, _ = await connect(GET % b"ok")
        assert (await answered.readline()) == b"HTTP/1.1 200 OK\r\n"
        for client in sockets:
            client.close()

    with_server(action, most=20)


@pytest.mark.parametrize("path", [b"big", b"stream"])
@pytest.mark.parametrize("limit", ["STALL_SECONDS", "UNREAD_BYTES", "seconds"])
def test_an_answer_that_is_not_read_is_given_up(monkeypatch: pytest.MonkeyPatch, path: bytes, limit: str) -> None:
    returned: list[None] = []
    return_memory = module.return_memory
    monkeypatch.setattr(module, "return_memory", lambda: returned.append(return_memory()))

    async def action(server: LimitedServer, connect: Client, ended: list[str]) -> None:
        if limit == "seconds":
            server.table.seconds = 0.3
        else:
            monkeypatch.setattr(module, limit, 0.3 if limit == "STALL_SECONDS" else 50_000)
        reader, _ = await connect(GET % path)
        while server.table.open:
            await asyncio.sleep(0.02)
        assert len(await closed(reader)) < BIG
        while not ended:  # the application's send returns once the connection is closed
            await asyncio.sleep(0.02)
        monkeypatch.setattr(module, "_SECONDS_TO_STOP", 0.0)
        while not returned:
            await asyncio.sleep(0.02)
        await asyncio.sleep(0.1)
        assert len(returned) == 1

    with_server(action)


def test_who_reads_gets_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "STALL_SECONDS", 0.5)

    async def action(server: LimitedServer, connect: Client, ended: list[str]) -> None:
        reader, _ = await connect(GET.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n") % b"big", limit=1_000_000)
        await asyncio.sleep(0.2)
        assert len(await closed(reader)) > BIG

    with_server(action)


@pytest.mark.parametrize(
    "request_",
    [
        b"POST /ok HTTP/1.1\r\nhost: localhost\r\ncontent-length: abc\r\n\r\n",
        b"GET /ok\r\n\r\n",
        b"\x16\x03\x01\x02\x00",
        b"GET /ok HTTP/1.1\r\n\r\n",
        b"GET /" + b"a" * 100_000,
    ],
    ids=["length", "no version", "TLS", "no host", "endless"],
)
def test_what_is_not_http_gets_an_error_in_the_usual_form(request_: bytes) -> None:
    async def action(server: LimitedServer, connect: Client, ended: list[str]) -> None:
        reader, _ = await connect(request_)
        head, _, body = (await closed(reader)).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\n")
        assert json.loads(body) == {"error": "Invalid HTTP request received. Send HTTP/1.1."}
        assert ended == []

    with_server(action)


def test_the_same_warning_is_logged_once_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    now, seldom = 0.0, Seldom()
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now))

    def logged(level: int, message: str, name: str = "uvicorn.error", error: Any = None) -> bool:
        return seldom.filter(logging.LogRecord(name, level, "", 0, message, (), error))

    error = (OSError, OSError("Too many open files"), None)
    assert [logged(logging.WARNING, "Invalid") for _ in range(3)] == [True, False, False]
    assert [logged(logging.ERROR, "accept()", "asyncio", error) for _ in range(3)] == [True, False, False]
    assert logged(logging.WARNING, "another")
    assert all(logged(logging.ERROR, "Exception in ASGI application", error=error) for _ in range(3))
    now = 60.0
    assert logged(logging.WARNING, "Invalid")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")
@pytest.mark.parametrize(
    ("limits", "found", "raised"),
    [
        ((256, 256), 192, (256, 256)),
        ((256, 100_000), 1024, (1088, 100_000)),
        ((256, -1), 1024, (1088, -1)),
        ((5000, 5000), 1024, None),
        ((-1, -1), 1024, None),
        ((20, 20), 16, (20, 20)),
    ],
)
def test_connections_are_as_many_as_there_are_descriptors(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    limits: tuple[int, int],
    found: int,
    raised: tuple[int, int] | None,
) -> None:
    import resource

    changed = []
    monkeypatch.setattr(resource, "RLIM_INFINITY", -1)
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits)
    monkeypatch.setattr(resource, "setrlimit", lambda _, new: changed.append(new))
    with caplog.at_level(logging.WARNING, "nmt"):
        assert possible_connections(1024) == found
    assert changed == ([] if raised is None else [raised])
    expected = f"only {limits[1]} files, so the server takes {found} connections; raise the limit with ulimit -n."
    assert (expected in caplog.text) == (found < 1024)
