"""The log of a command: plain lines on standard error."""

import logging
import sys


class NamedLevels(logging.Formatter):
    """Prefixes warnings and errors with their level."""

    def format(self, record: logging.LogRecord) -> str:
        line = super().format(record)
        return f"{record.levelname.lower()}: {line}" if record.levelno >= logging.WARNING else line


def log_to_standard_error() -> None:
    """Shows this package's messages and the warnings of libraries, unless logging is configured already."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(NamedLevels())
    logging.basicConfig(handlers=[handler], level=logging.WARNING)
    logging.getLogger("nmt").setLevel(logging.INFO)
