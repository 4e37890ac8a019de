"""What a command imports before it does its work, counted in modules: seconds depend on the machine."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

COMMANDS = sorted(file.stem for file in (Path(__file__).resolve().parents[1] / "configs").glob("*.yaml"))
TENSORS = {"torch", "lightning", "safetensors", "ctranslate2", "onnx", "onnxruntime"}
TABLES = {"datasets", "matplotlib", "pandas", "sklearn", "scipy"}
UNUSED = TABLES | {"lightning", "onnx", "onnxruntime", "sacrebleu", "sympy", "torch._dynamo", "torch._inductor"}
"""What no translation needs. torch imports its compiler, and sympy with it, to draw a number on the meta device."""
# 15 % more than with torch 2.13, which alone brings 1,136 of the 1,539 modules of a line; all --help together have 462.
MOST_FOR_HELP, MOST_FOR_A_LINE = 530, 1770

# Runs each command in turn. Prints its exit code and what it printed, which of the given modules have been imported
# since the start, and how many modules in all.
SCRIPT = """
import contextlib, json, runpy, sys, tempfile
names, *commands = map(json.loads, sys.argv[1:])
codes, printed = [], []
for command, *arguments in commands:
    sys.argv = [command, *arguments]
    with tempfile.TemporaryFile("w+", encoding="utf-8") as output:
        try:
            with contextlib.redirect_stdout(output):
                runpy.run_module(command, run_name="__main__", alter_sys=True)
            codes.append(0)
        except SystemExit as error:
            codes.append(error.code)
        output.seek(0)
        printed.append(output.read())
print(json.dumps([codes, printed, sorted(set(names) & set(sys.modules)), len(sys.modules)]))
"""


class Imported(NamedTuple):
    """What some commands printed and ended with, in one process, and what they imported."""

    codes: list[int | str | None]
    printed: list[str]
    heavy: list[str]
    modules: int


def imported(names: set[str], *commands: list[str], stdin: str = "") -> Imported:
    arguments = [json.dumps(sorted(names)), *map(json.dumps, commands)]
    ended = subprocess.run(
        [sys.executable, "-c", SCRIPT, *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    assert ended.returncode == 0, ended.stderr
    return Imported(*json.loads(ended.stdout))


def test_help_of_all_commands_imports_no_library_that_computes() -> None:
    commands = [[f"nmt.{name}", "--help"] for name in COMMANDS]
    ended = imported(TENSORS | TABLES | {"numpy", "sacrebleu"}, *commands)
    assert ended.codes == [0] * len(COMMANDS)
    for name, printed in zip(COMMANDS, ended.printed, strict=True):
        assert f"python -m nmt.{name}" in printed, name
    assert ended.heavy == []
    assert ended.modules < MOST_FOR_HELP


def test_a_line_imports_only_what_translates_it() -> None:
    ended = imported(UNUSED, ["nmt.translate", "run_dir=en-vi"], stdin="Hello, how are you?\n")
    assert ended.codes == [0]
    assert re.fullmatch(r"[^\n]+\n", ended.printed[0])
    assert ended.heavy == []
    assert ended.modules < MOST_FOR_A_LINE
