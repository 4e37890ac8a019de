"""How a script tells a mistake: one sentence on standard error, and exit code 2 as the commands have it."""

import sys
from collections.abc import Callable
from typing import Any


def told(main: Callable[..., Any], *arguments: Any) -> None:
    """Calls main; a ValueError or a missing file is the user's mistake, of the script's own lines too."""
    try:
        main(*arguments)
    except (ValueError, FileNotFoundError) as mistake:
        print(f"error: {mistake}", file=sys.stderr)
        sys.exit(2)
