"""What the lines of a command look like."""

import logging

import pytest

from nmt.cli.log import NamedLevels


@pytest.mark.parametrize(
    ("level", "line"),
    [(logging.INFO, "Step 3"), (logging.WARNING, "warning: Step 3"), (logging.ERROR, "error: Step 3")],
)
def test_a_warning_and_an_error_say_what_they_are(level: int, line: str) -> None:
    assert NamedLevels().format(logging.LogRecord("nmt", level, "", 1, "Step %d", (3,), None)) == line
