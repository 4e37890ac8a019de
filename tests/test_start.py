"""What a command imports before it does its work, counted in modules: seconds depend on the machine."""

import json
import os
import subprocess
import sys
from pathlib import Path

COMMANDS = sorted(file.stem for file in (Path(__file__).resolve().parents[1] / "configs").glob("*.yaml"))
TENSORS = {"torch", "lightning", "safetensors", "ctranslate2", "onnx", "onnxruntime"}
TABLES = {"datasets", "matplotlib", "pandas", "sklearn", "scipy"}
UNUSED = TABLES | {"lightning", "onnx", "onnxruntime", "sacrebleu", "sympy", "torch._dynamo", "torch._inductor"}
"""What no translation needs. torch imports its compiler, and sympy with it, to draw a number on the meta device."""

# Runs each command in turn and prints which of the given modules have been imported since the start, and how many
# modules in all.
SCRIPT = """
import contextlib, json, os, runpy, sys
names, *commands = map(json.loads, sys.argv[1:])
for command, *arguments in commands:
    sys.argv = [command, *arguments]
    with contextlib.suppress(SystemExit), contextlib.redirect_stdout(open(os.devnull, "w")):
        runpy.run_module(command, run_name="__main__", alter_sys=True)
print(json.dumps([sorted(set(names) & set(sys.modules)), len(sys.modules)]))
"""


def imported(names: set[str], *commands: list[str], stdin: str = "") -> tuple[list[str], int]:
    arguments = [json.dumps(sorted(names)), *map(json.dumps, commands)]
    ended = subprocess.run(
        [sys.executable, "-c", SCRIPT, *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    assert ended.returncode == 0, ended.stderr
    heavy, modules = json.loads(ended.stdout)
    return heavy, modules


def test_help_of_all_commands_imports_no_library_that_computes() -> None:
    commands = [[f"nmt.{name}", "--help"] for name in COMMANDS]
    heavy, modules = imported(TENSORS | TABLES | {"numpy", "sacrebleu"}, *commands)
    assert heavy == []
    assert modules < 650


def test_a_line_imports_only_what_translates_it() -> None:
    """torch 2.13 alone brings 1,136 modules."""
    heavy, modules = imported(UNUSED, ["nmt.translate", "run_dir=en-vi"], stdin="Hello, how are you?\n")
    assert heavy == []
    assert modules < 1700
