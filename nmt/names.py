"""Short names for several paths."""

import os
import re
from collections.abc import Sequence
from pathlib import Path

_SEED = re.compile(r"seed=?\d+(_average)?", re.ASCII)
"""A last folder that says nothing about the model: that of run_dir's default, what nmt.average makes of it, and that of
a sweep over seeds alone.
"""


def distinct_names(paths: Sequence[Path]) -> list[str]:
    """The ends of the paths, just long enough that no two are equal and that none is a seed alone, such as seed1."""
    # Links are not resolved: a run keeps the name of the link that the user gave.
    parts = [Path(os.path.abspath(path)).parts for path in paths]
    shortest = [2 if _SEED.fullmatch(path_parts[-1]) else 1 for path_parts in parts]
    for more in range(max(map(len, parts), default=0)):
        names = ["/".join(path_parts[-(least + more) :]) for path_parts, least in zip(parts, shortest, strict=True)]
        if len(set(names)) == len(names):
            return names
    return [str(path) for path in paths]
