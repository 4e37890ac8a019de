"""Returns freed memory to the operating system."""

import ctypes
import gc
import sys


def return_memory() -> None:
    """Gives freed memory back to the operating system; glibc would keep most of what many small pieces occupied."""
    gc.collect()
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # other C libraries do not have it
        if trim is not None:
            trim(0)
