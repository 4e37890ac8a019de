"""Starts the real server in a separate process, for scripts that measure or test it."""

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from nmt.errors import Mistake
from scripts.processes import cpu_seconds, of_each, resident_mib


class Server(NamedTuple):
    """A running server."""

    process: subprocess.Popen[str]
    address: str
    log: Path
    """Its standard error."""

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])

    @property
    def memory(self) -> float:
        """Resident memory of all its processes in MiB (Linux); what several share counts for each."""
        return sum(of_each(self.process.pid, resident_mib))

    @property
    def cpu_seconds(self) -> float:
        """Seconds of CPU that all its processes have used so far (Linux)."""
        return sum(of_each(self.process.pid, cpu_seconds))


@contextmanager
def server(run: Path, log: Path, *overrides: str, descriptors: int | None = None) -> Iterator[Server]:
    """Runs nmt.serve with a run on a free port until the end of the block; `descriptors` limits its open files.

    Raises Mistake if it does not start.
    """
    command = [sys.executable, "-m", "nmt.serve", f"run_dirs=[{run}]", "port=0", *overrides]
    if descriptors is not None:
        command = ["sh", "-c", f'ulimit -n {descriptors} && exec "$@"', "sh", *command]
    with log.open("w", encoding="utf-8") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
    assert process.stdout is not None
    with process.stdout:
        address = process.stdout.readline().strip()
        try:
            if not address:
                raise Mistake(f"The server did not start: {log.read_text(encoding='utf-8')[-500:].strip()}")
            yield Server(process, address, log)
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
            process.wait()


class Connection:
    """A connection that sends one request after another, with as little overhead as possible in Python.

    Raises ConnectionError if the server closes it; `received` is the number of bytes of the answer until then.
    """

    def __init__(self, port: int) -> None:
        self.port, self.received = port, 0
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, path: str, fields: Any = None) -> tuple[int, bytes]:
        """The status and the body of the answer; GET without fields, POST with a JSON body otherwise."""
        reader, writer = await self.open()
        writer.write(self.request(path, fields))
        return await self.answer(reader)

    @staticmethod
    def request(path: str, fields: Any = None, header: str = "") -> bytes:
        """The bytes of a request: GET without fields, POST with a JSON body otherwise."""
        body = b"" if fields is None else json.dumps(fields).encode()
        method = "GET" if fields is None else "POST"
        head = f"{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n{header}"
        return f"{head}content-length: {len(body)}\r\n\r\n".encode() + body

    async def answer(self, reader: asyncio.StreamReader) -> tuple[int, bytes]:
        """The next answer on the connection."""
        self.received = 0
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            self.received = len(head)
            lines = head.decode("latin-1").lower().split("\r\n")
            length = [int(line.split(":")[1]) for line in lines if line.startswith("content-length:")]
            return int(head[9:12]), await reader.readexactly(*(length or [0]))
        except asyncio.IncompleteReadError as error:
            self.received += len(error.partial)
            raise ConnectionError("The server closed the connection.") from error

    async def open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """The streams of the connection, which is opened on first use."""
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self.port)
        return self._streams

    def close(self, *, abruptly: bool = False) -> None:
        """Closes the connection. With `abruptly`, this looks as if the client's process had been killed."""
        if self._streams:
            transport = self._streams[1].transport
            transport.abort() if abruptly else transport.close()
            self._streams = None
