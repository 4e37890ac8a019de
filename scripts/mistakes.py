"""How a script reports a user's mistake: one sentence on standard error, and exit code 2, as the commands do."""

import sys
from collections.abc import Callable
from typing import Any

from nmt.errors import report


def report_mistakes(main: Callable[..., Any], *arguments: Any) -> None:
    """Exits with the code that main returns, or that of the error that ends it; only a bug has a traceback."""
    try:
        sys.exit(main(*arguments))
    except Exception as error:
        sys.exit(report(error))
