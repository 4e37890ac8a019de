"""Commands that tests start in processes of their own find what they need already loaded."""

import subprocess
from functools import partial
from pathlib import Path

from forked import Forked

LOADED = "import sys; print({'preloaded', 'nmt.commands.train', 'torch.utils.tensorboard'} <= set(sys.modules))"


def test_a_forked_process_has_what_commands_import(tmp_path: Path) -> None:
    """The server of such processes only passes over a module that it cannot import."""
    process = Forked(partial(exec, LOADED), ["test"], tmp_path, subprocess.PIPE)
    output = process.communicate()
    process.close()
    assert output == ("True\n", "")
