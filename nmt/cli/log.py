"""The log lines of a command, on standard error."""

import logging
import sys
from typing import Any

from nmt.errors import printable


class StandardErrorHandler(logging.StreamHandler):
    """Writes to what sys.stderr is at the time of a message, so that messages appear above a progress bar."""

    @property
    def stream(self) -> Any:
        return sys.stderr

    @stream.setter
    def stream(self, stream: Any) -> None:
        pass


class NamedLevels(logging.Formatter):
    """Prefixes warnings and errors with their level."""

    def format(self, record: logging.LogRecord) -> str:
        line = "\n".join(map(printable, super().format(record).split("\n")))  # a traceback has several lines
        return f"{record.levelname.lower()}: {line}" if record.levelno >= logging.WARNING else line


def log_to_standard_error() -> None:
    """Shows this package's messages and the warnings of libraries, unless logging is configured already."""
    handler = StandardErrorHandler()
    handler.setFormatter(NamedLevels())
    logging.basicConfig(handlers=[handler], level=logging.WARNING)
    logging.getLogger("nmt").setLevel(logging.INFO)
