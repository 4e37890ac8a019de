"""Reads lines from a pipe, and says whether its writer pauses."""

import io
import os
import select
import stat
import sys
from typing import IO

from nmt.text.lines import readable

_CHUNK = 2**16
"""Bytes to read at once; the capacity of a pipe on Linux."""
_PAUSE = 0.02
"""A writer pauses if it sends nothing for this many seconds. More would delay answers, less would split batches."""


class Pipe(io.BufferedIOBase):
    """A pipe or socket that can say whether its writer pauses; Python's own files cannot. Messages call it `name`."""

    def __init__(self, descriptor: int, name: str) -> None:
        self._descriptor, self._name = descriptor, name
        self._unread = bytearray()

    @staticmethod
    def connected_to(file: IO[str]) -> bool:
        """Whether the file is a pipe or socket of a system on which `paused` can tell. No byte may have been read."""
        try:
            mode = os.fstat(file.fileno()).st_mode
        except OSError:  # a file in memory
            return False
        # On Windows, select accepts sockets only.
        return (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)) and sys.platform != "win32"

    def readline(self, limit: int | None = -1, /) -> bytes:
        """The next line with its end, at most `limit` bytes of it; b"" at the end of the input."""
        most = sys.maxsize if limit is None or limit < 0 else limit
        while (end := self._unread.find(b"\n") + 1) == 0 and len(self._unread) < most:
            if not (chunk := os.read(self._descriptor, _CHUNK)):
                break
            self._unread += chunk
        size = min(end or len(self._unread), most)
        line = bytes(self._unread[:size])
        del self._unread[:size]
        return line

    def paused(self) -> bool:
        """Whether the writer pauses before it has finished the next line. False at the end of the input.

        Raises CheckFailed if the pipe can no longer be read.
        """
        # A writer may send a part of the next line and then wait. A line longer than a chunk is waited for.
        while b"\n" not in self._unread and len(self._unread) < _CHUNK:
            if not select.select([self._descriptor], [], [], _PAUSE)[0]:
                return True
            with readable(self._name):
                chunk = os.read(self._descriptor, _CHUNK)
            if not chunk:
                return False
            self._unread += chunk
        return False
