"""Lines that another program writes, and whether it pauses."""

import io
import os
import select
import stat
import sys
from typing import IO

_CHUNK = 2**16
"""Bytes to read at once; the capacity of a pipe on Linux."""
_PAUSE = 0.02
"""Seconds without a byte after which a program pauses. Longer would delay each answer, shorter would split batches."""


class Pipe(io.BufferedIOBase):
    """A pipe or socket that can say whether the program at the other end pauses; Python's own files cannot."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._unread = bytearray()

    @staticmethod
    def connected_to(file: IO[str]) -> bool:
        """Whether the file is a pipe or socket of a system on which `paused` can tell. No byte may have been read."""
        try:
            mode = os.fstat(file.fileno()).st_mode
        except OSError:  # a file in memory
            return False
        return (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)) and hasattr(select, "poll")

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
        """Whether no line has come for a short time. False at the end of the input."""
        if b"\n" in self._unread:
            return False
        waiting, _, _ = select.select([self._descriptor], [], [], _PAUSE)
        return not waiting
