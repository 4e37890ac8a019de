"""Every command of a script that a page, the Makefile or the script itself shows has options that the script knows."""

import argparse
import ast
import importlib
import inspect
import re
import shlex
import sys
from collections.abc import Iterator
from itertools import chain
from typing import Any

import pytest
from test_docs import MANUAL, ROOT, code, name

COMMAND = re.compile(r"(?:-m|\$\(VENV\)) (scripts\.[\w.]+\w)(?= |$)((?:(?!&& ).)*)")
AFTER = re.compile(r" [<>|] | \|\| |; | #|   ")
"""What ends a command within a match: a redirection, another command, a comment, or the description after it."""


class ArgumentsRead(Exception):  # noqa: N818
    """Raised in place of what a script does once it has read its arguments."""


def texts() -> Iterator[tuple[str, list[str]]]:
    """The lines of code of every page, the Makefile and the docstring of every script, by its name."""
    yield from ((name(page), list(code(page))) for page in MANUAL)
    for path in [ROOT / "Makefile", *sorted((ROOT / "scripts").rglob("*.py"))]:
        text = path.read_text(encoding="utf-8")
        shown = text if path.name == "Makefile" else ast.get_docstring(ast.parse(text)) or ""
        yield name(path), re.sub(r"\\\n\s*", "", shown).splitlines()


def test_a_script_knows_the_options_of_every_shown_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for method in ("parse_args", "parse_intermixed_args"):
        parse = getattr(argparse.ArgumentParser, method)

        def parsed(parser: Any, *arguments: Any, parse: Any = parse) -> None:
            parse(parser, *arguments)
            raise ArgumentsRead

        monkeypatch.setattr(argparse.ArgumentParser, method, parsed)
    read = 0
    for place, lines in texts():
        for match in chain.from_iterable(map(COMMAND.finditer, lines)):
            module, arguments = match[1], shlex.split(AFTER.split(match[2])[0])
            if not arguments:  # a page that only names the script
                continue
            script = importlib.import_module(module)
            monkeypatch.setattr(sys, "argv", [module, *arguments])
            with pytest.raises((ArgumentsRead, SystemExit)) as raised:  # --help exits
                script.main(*([arguments] if inspect.signature(script.main).parameters else []))
            refused = isinstance(raised.value, SystemExit) and raised.value.code != 0
            assert not refused, f"{place}: {match[0]}\n{capsys.readouterr().err}"
            read += 1
    assert read > 60
