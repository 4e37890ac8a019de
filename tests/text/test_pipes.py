"""A pipe gives the bytes of a file, and says whether its writer pauses."""

import io
import os
import socket
import sys
from collections.abc import Iterator
from threading import Thread

import pytest

from nmt.errors import CheckFailed
from nmt.text.lines import LONGEST_LINE, bounded_lines
from nmt.text.pipes import Pipe


@pytest.fixture
def ends() -> Iterator[tuple[int, io.FileIO]]:
    reading, writing = os.pipe()
    with open(reading, "rb", buffering=0), open(writing, "wb", buffering=0) as writer:
        yield reading, writer


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n",
        b"a\nb",
        b"a\r\n\n\nb\n",
        b"\xef\xbb\xbfa\n",
        "dài".encode() * 30_000 + b"\nb\n",
        b"x" * (LONGEST_LINE + 10) + b"\nb\n",
        b"x" * (3 * LONGEST_LINE),
    ],
    ids=["nothing", "empty", "no last end", "ends", "mark", "over 64 KiB", "cut", "cut at the end"],
)
def test_its_lines_are_those_of_a_file(ends: tuple[int, io.FileIO], data: bytes) -> None:
    descriptor, writer = ends

    def write() -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[writer.write(rest) :]
        writer.close()

    thread = Thread(target=write)
    thread.start()
    assert list(bounded_lines(Pipe(descriptor, "a pipe"))) == list(bounded_lines(io.BytesIO(data)))
    thread.join()


def test_it_pauses_when_all_lines_are_read_until_there_is_another_or_the_end(ends: tuple[int, io.FileIO]) -> None:
    descriptor, writer = ends
    pipe = Pipe(descriptor, "a pipe")
    assert pipe.paused()
    writer.write(b"a\nb\n")
    assert not pipe.paused()
    assert pipe.readline() == b"a\n"
    assert not pipe.paused()  # the next line is read already
    assert pipe.readline() == b"b\n"
    assert pipe.paused()
    writer.write(b"c\nd")
    assert not pipe.paused()
    assert pipe.readline() == b"c\n"
    assert pipe.paused()  # in the middle of a line
    writer.write(b"e")
    assert pipe.paused()
    writer.close()
    assert not pipe.paused()
    assert pipe.readline() == b"de"
    assert pipe.readline() == b""


def test_a_connection_that_breaks_is_reported() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.send(b"a")
        # A side that closes without having read what was sent to it resets the connection.
        ours.send(b"unread")
        theirs.close()
        pipe = Pipe(ours.fileno(), "Standard input")
        with pytest.raises(CheckFailed, match="Standard input cannot be read"):
            pipe.paused()


def test_a_file_is_not_a_pipe(ends: tuple[int, io.FileIO]) -> None:
    assert not Pipe.connected_to(io.TextIOWrapper(io.BytesIO()))
    with open(__file__) as file:
        assert not Pipe.connected_to(file)
    with open(ends[0], closefd=False) as file:
        assert Pipe.connected_to(file) == (sys.platform != "win32")
