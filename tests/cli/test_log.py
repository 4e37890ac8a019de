"""The format of log lines."""

import logging

import pytest

from nmt.cli.log import NamedLevels


@pytest.mark.parametrize(
    ("level", "line"),
    [(logging.INFO, "Step 3"), (logging.WARNING, "warning: Step 3"), (logging.ERROR, "error: Step 3")],
)
def test_warnings_and_errors_begin_with_their_level(level: int, line: str) -> None:
    assert NamedLevels().format(logging.LogRecord("nmt", level, "", 1, "Step %d", (3,), None)) == line
