"""How a script reports a user's mistake: one sentence on standard error, and exit code 2, as the commands do."""

import sys
from collections.abc import Callable
from typing import Any

from nmt.errors import Mistake


def report_mistakes(main: Callable[..., Any], *arguments: Any) -> None:
    """Exits with the code that main returns, or with 2 after printing the error if it is a user's mistake."""
    try:
        sys.exit(main(*arguments))
    except Mistake as mistake:
        print(f"error: {mistake}", file=sys.stderr)
        sys.exit(2)
