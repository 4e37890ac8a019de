"""The command line: arguments as typed -> configuration -> validated job -> command -> exit code."""

import sys
from importlib.util import find_spec

from nmt.signals import leave_on_interrupt

# Importing Hydra, and then torch, takes seconds, in which Ctrl-C would show a traceback from inside of a library. In
# any other program than a command, such as one that runs the tests, Ctrl-C is left alone.
if (spec := getattr(sys.modules["__main__"], "__spec__", None)) and spec.name.startswith("nmt."):
    leave_on_interrupt()
    if find_spec("hydra") is None:
        print(
            f"error: {sys.executable} does not have the packages that nmt needs. Activate the environment that it is "
            "installed in, as in: source .venv/bin/activate",
            file=sys.stderr,
        )
        sys.exit(2)
