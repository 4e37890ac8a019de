"""`nmt COMMAND ...` runs `python -m nmt.COMMAND ...`; `nmt` alone lists the commands."""

import ast
import re
import runpy
import shutil
import sys
import textwrap
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from nmt.cli.completion import completion_script
from nmt.config.messages import unknown
from nmt.config.nodes import CONFIGS
from nmt.errors import Mistake, exit_code
from nmt.signals import leave_on_interrupt


def main() -> None:
    """Runs the command that the first argument names, or prints the list of commands, and exits."""
    names = sorted(file.stem for file in CONFIGS.glob("*.yaml"))
    if sys.argv[1:2] in (["-h"], ["--help"]):  # before a command as after it
        sys.argv = [sys.argv[0], *sys.argv[2:], sys.argv[1]]
    name = sys.argv[1].removeprefix("nmt.") if len(sys.argv) > 1 else ""
    if name not in names:
        sys.exit(exit_code(partial(_overview, names, sys.argv[1:])))
    leave_on_interrupt()  # the console script `nmt` is not started as a module of nmt, which nmt.cli would notice
    del sys.argv[1]
    # As `python -m nmt.NAME` does: whatever starts the command again, such as one process per device, finds its module.
    runpy.run_module(f"nmt.{name}", run_name="__main__", alter_sys=True)


def _overview(names: Sequence[str], arguments: Sequence[str]) -> int:
    """Prints each command with the first sentence of its help, or what --version and --completion ask for."""
    if "--version" in arguments:
        from nmt.cli.command import version_text  # imports Hydra

        print(version_text())
        return 0
    if arguments[:1] == ["--completion"]:
        print(completion_script(" ".join(arguments[1:]), names), end="")
        return 0
    if words := [argument for argument in arguments if argument not in ("-h", "--help")]:
        if words[0].startswith("-"):
            raise Mistake(f"Unknown option '{words[0]}'. Write --help or --version, or run one of the commands.")
        if "=" in words[0]:
            raise Mistake(f"'{words[0]}' has no command before it. Write one, as in nmt train {words[0]}.")
        raise Mistake(unknown("command", words[0], names))
    print("Usage: nmt COMMAND [KEY=VALUE ...]\n")
    width = max(map(len, names))
    columns = max(shutil.get_terminal_size((120, 1)).columns, width + 50)
    for name in names:
        source = Path(__file__).with_name(f"{name}.py").read_text(encoding="utf-8")  # importing all takes seconds
        paragraph = (ast.get_docstring(ast.parse(source)) or "").partition("\n\n")[0]
        sentence = re.split(r"(?<=\.)\s", paragraph, maxsplit=1)[0]
        start = f"  {name:<{width}}  "
        print(textwrap.fill(sentence, columns, initial_indent=start, subsequent_indent=" " * len(start)))
    print("\nnmt COMMAND --help prints the examples, choices and keys of a command. python -m nmt.COMMAND runs it too.")
    return 0


if __name__ == "__main__":
    main()
