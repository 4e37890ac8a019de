"""`python -m nmt`: the list of commands."""

import ast
import re
import shutil
import sys
import textwrap
from pathlib import Path

from nmt.config.nodes import CONFIGS
from nmt.errors import Mistake, exit_code


def overview() -> int:
    """Prints each command with the first sentence of its help; with --version, the versions that matter."""
    if "--version" in sys.argv[1:]:
        from nmt.cli.command import version_text  # imports Hydra

        print(version_text())
        return 0
    names = sorted(file.stem for file in CONFIGS.glob("*.yaml"))
    if words := [argument for argument in sys.argv[1:] if argument not in ("-h", "--help")]:
        if words[0].startswith("-"):
            raise Mistake(f"Unknown option '{words[0]}'. Write --help or --version, or run one of the commands.")
        command = words[0].removeprefix("nmt.")
        if command in names:
            raise Mistake(f"'{words[0]}' is a command of its own: write python -m nmt.{command}.")
        raise Mistake(f"There is no command '{words[0]}'; python -m nmt lists all commands.")
    width = max(map(len, names))
    columns = max(shutil.get_terminal_size((120, 1)).columns, width + 50)
    for name in names:
        source = Path(__file__).with_name(f"{name}.py").read_text(encoding="utf-8")  # importing all takes seconds
        paragraph = (ast.get_docstring(ast.parse(source)) or "").partition("\n\n")[0]
        sentence = re.split(r"(?<=\.)\s", paragraph, maxsplit=1)[0]
        start = f"python -m nmt.{name:<{width}}  "
        print(textwrap.fill(sentence, columns, initial_indent=start, subsequent_indent=" " * len(start)))
    print("\nEach of them prints its examples, choices and keys with --help.")
    return 0


if __name__ == "__main__":
    sys.exit(exit_code(overview))
