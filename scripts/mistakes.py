"""How a script tells a mistake: one sentence on standard error, and exit code 2 as the commands have it."""

import sys
from collections.abc import Callable
from typing import Any

from nmt.errors import MISTAKES


def told(main: Callable[..., Any], *arguments: Any) -> None:
    """Calls main; what the commands call a mistake is one in the script's own lines too."""
    try:
        main(*arguments)
    except MISTAKES as mistake:
        print(f"error: {mistake}", file=sys.stderr)
        sys.exit(2)
