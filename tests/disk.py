"""No test survives a power failure, so none waits for the disk."""

import os


def not_waiting(file: int) -> None:
    """Stands for os.fsync, which takes 10 ms; a training calls it 15 times. Raises OSError for a closed file, too."""
    os.fstat(file)
