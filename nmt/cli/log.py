"""The lines that a command writes to standard error while it works."""

import logging
import sys


class NamedLevels(logging.Formatter):
    """Plain lines, but for warnings and errors, which begin with what they are."""

    def format(self, record: logging.LogRecord) -> str:
        line = super().format(record)
        return f"{record.levelname.lower()}: {line}" if record.levelno >= logging.WARNING else line


def log_to_standard_error() -> None:
    """Shows what this package tells, and the warnings of others; a program that has set up logging keeps its own."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(NamedLevels())
    logging.basicConfig(handlers=[handler], level=logging.WARNING)
    logging.getLogger("nmt").setLevel(logging.INFO)
