"""No test survives a power failure, so none waits for the disk."""

import os


def not_waiting(file: int) -> None:
    """Replaces os.fsync, which takes 10 ms and is called 15 times in a run. Raises OSError for a closed file, too."""
    os.fstat(file)
