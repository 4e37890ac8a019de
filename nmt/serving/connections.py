"""The HTTP server, which limits what a client can hold: connections, unfinished headers, and answers that it leaves
unread.

uvicorn limits none of these: its `limit_concurrency` counts idle connections too and then refuses everybody, and its
`timeout_keep_alive` begins after the first answer.
"""

import asyncio
import json
import logging
import socket
import sys
import threading
import time
from functools import partial
from typing import Any, NamedTuple

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from nmt.serving.allocator import return_memory

logger = logging.getLogger(__name__)

HEADER_SECONDS = 10.0
"""A connection is closed if no whole request header arrives within this time, from its start or its last answer."""
STALL_SECONDS = 10.0
"""A connection is closed if its client reads nothing of an answer for this long."""
UNREAD_BYTES = 256_000_000
"""All answers together may have this many unread bytes; beyond that, the connections with most of them are closed."""

_ACCEPTED_AT_ONCE = 4
"""asyncio accepts up to this many connections per turn of its loop, and reads from a connection some turns later. By
then, a full table must not have closed it for the next ones."""
_BACKLOG = 2048
_OTHER_DESCRIPTORS = 64
"""Descriptors kept free: 16 for connections being opened and closed, and 48 for files and libraries."""
_FEWEST_CONNECTIONS = 16
_SECONDS_BETWEEN_CHECKS = 1.0
_SECONDS_TO_STOP = 3.0
"""Within this time, the work for a closed connection has stopped."""
_SECONDS_BETWEEN_WARNINGS = 60.0


class _Unread(NamedTuple):
    """An answer that the client has not read to its end."""

    size: int
    """In bytes."""
    since: float
    """When it was sent, in seconds of time.monotonic."""
    read: float
    """When the client last read some of it, likewise."""


class Connections:
    """The open connections of a server, at most `most` of them.

    A new connection beyond that closes the one that has waited longest for a request; if none waits, it is closed
    itself. `seconds` limits how long a client may take to read an answer.
    """

    def __init__(self, most: int, seconds: float) -> None:
        self.most, self.seconds = most, seconds
        self.open: set[_Connection] = set()
        self._waiting: dict[_Connection, float] = {}  # since when; the longest first
        self._unread: dict[_Connection, _Unread] = {}
        self._given_up: float | None = None  # when an answer was last left unread, until its memory has been returned

    def opened(self, connection: "_Connection") -> None:
        """Makes room for a connection, and counts it."""
        if len(self.open) >= self.most and not self._waiting:
            connection.transport.abort()
            return
        if len(self.open) >= self.most:
            self._close(next(iter(self._waiting)))
        self.open.add(connection)
        self.waits(connection)

    def closed(self, connection: "_Connection") -> None:
        """Forgets a connection."""
        self.open.discard(connection)
        self._waiting.pop(connection, None)
        self._unread.pop(connection, None)

    def waits(self, connection: "_Connection") -> None:
        """The connection waits for a request from now on."""
        self._waiting.pop(connection, None)
        if connection in self.open:
            self._waiting[connection] = time.monotonic()

    def works(self, connection: "_Connection") -> None:
        """The header of a request has arrived."""
        self._waiting.pop(connection, None)

    def check(self) -> None:
        """Closes the connections that exceed a limit. Must be called again and again."""
        now = time.monotonic()
        for connection, since in list(self._waiting.items()):
            if now - since < HEADER_SECONDS:
                break
            if not connection.transport.get_write_buffer_size():
                self._close(connection)
        unread: dict[_Connection, _Unread] = {}
        for connection in self.open:
            if size := connection.transport.get_write_buffer_size():
                before = self._unread.get(connection, _Unread(size, now, now))
                unread[connection] = _Unread(size, before.since, now if size < before.size else before.read)
        self._unread = unread
        total = sum(answer.size for answer in unread.values())
        for connection, answer in sorted(unread.items(), key=lambda item: -item[1].size):
            if total > UNREAD_BYTES or now - answer.read >= STALL_SECONDS or now - answer.since >= self.seconds:
                total -= answer.size
                self._close(connection)
                self._given_up = now

    def has_memory_to_return(self) -> bool:
        """Whether unread answers have been given up, some seconds ago and for the last time. True only once."""
        if self._given_up is None or time.monotonic() - self._given_up < _SECONDS_TO_STOP:
            return False
        self._given_up = None
        return True

    def _close(self, connection: "_Connection") -> None:
        # asyncio's close() would wait for the client to read everything. The socket is closed in the next turn of the
        # event loop, when further connections may have been opened; so it is no longer counted from now on.
        connection.transport.abort()
        self.closed(connection)


class _Connection(H11Protocol):
    """uvicorn's connection, which reports its state to Connections.

    It parses HTTP with h11 even if httptools is installed, so that the same limits apply everywhere.
    """

    def __init__(self, connections: Connections, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.table = connections

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.table.opened(self)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.table.closed(self)

    def handle_events(self) -> None:
        super().handle_events()
        if self.cycle is not None and not self.cycle.response_complete:
            self.table.works(self)

    def send_400_response(self, msg: str) -> None:
        """Answers malformed HTTP with an error in the usual JSON form."""
        body = json.dumps({"error": f"{msg} Send HTTP/1.1."}).encode()
        head = f"HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
        self.transport.write(head.encode() + b"connection: close\r\n\r\n" + body)
        self.transport.close()

    def on_response_complete(self) -> None:
        self.table.waits(self)
        super().on_response_complete()  # may begin with the next request, if that has arrived


class LimitedServer(uvicorn.Server):
    """uvicorn's server with the limits of Connections. `shutdown_seconds` limits how long it finishes requests."""

    def __init__(self, app: ASGIApp, connections: Connections, shutdown_seconds: int, **settings: Any) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http=partial(_Connection, connections),  # type: ignore[arg-type]
                ws="none",
                log_config=None,
                access_log=False,
                backlog=_ACCEPTED_AT_ONCE,
                timeout_graceful_shutdown=shutdown_seconds,
                **settings,
            )
        )
        self.table = connections

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for listening in sockets or []:
            listening.listen(_BACKLOG)  # uvicorn has set it to the number of connections accepted at once
        self._check()

    def _check(self) -> None:
        self.table.check()
        if self.table.has_memory_to_return():
            threading.Thread(target=return_memory, name="memory").start()
        asyncio.get_running_loop().call_later(_SECONDS_BETWEEN_CHECKS, self._check)


class Seldom(logging.Filter):
    """Lets the same message through once a minute, because clients can cause any number of them.

    The application's tracebacks are always let through.
    """

    def __init__(self) -> None:
        super().__init__()
        self._last: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.WARNING or (record.exc_info and record.name != "asyncio"):
            return True
        now, message = time.monotonic(), str(record.msg)
        self._last = {text: at for text, at in self._last.items() if now - at < _SECONDS_BETWEEN_WARNINGS}
        if message in self._last:
            return False
        self._last[message] = now
        return True


def possible_connections(wanted: int) -> int:
    """How many connections the process can have, at most `wanted`; raises its limit on open files as far as needed."""
    if sys.platform == "win32":
        return wanted
    import resource

    needed = wanted + _OTHER_DESCRIPTORS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return wanted
    allowed = needed if hard == resource.RLIM_INFINITY else min(hard, needed)
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    if allowed == needed:
        return wanted
    possible = max(_FEWEST_CONNECTIONS, allowed - _OTHER_DESCRIPTORS)
    logger.warning(
        "max_connections is %d, but this process may open only %d files, so the server takes %d connections; raise the "
        "limit with ulimit -n.",
        wanted,
        allowed,
        possible,
    )
    return possible
