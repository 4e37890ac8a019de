"""The house rules that a program can check: who imports whom, and what things are called."""

import ast
import functools
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "nmt"
FILES = sorted(PACKAGE.rglob("*.py"))
ENTRY, SHARED = "entry points", "cores, errors, files, names, paths, pace, ranks, signals, sites, tables"
# Whom each package may import, beside itself. Entry points only name what cli runs; nmt.load needs runs and exports.
_BELOW_RUNS = {"maps", "evaluation", "decoding", "models", "attention", "kernels", "data", "text", "config", SHARED}
EDGES: dict[str, set[str]] = {
    SHARED: set(),
    "config": {SHARED},
    "kernels": set(),
    "attention": {"kernels"},
    "models": {"attention", "kernels"},
    "text": set(),
    "data": {"config", "text", SHARED},
    "decoding": {"kernels", "config", "data", "text", SHARED},
    "evaluation": {"config", "data", "text", SHARED},
    "maps": {"config", "data", "text", SHARED},
    "runs": _BELOW_RUNS,
    "insight": {"runs", *_BELOW_RUNS},
    "scoring": {"insight", "runs", *_BELOW_RUNS},
    "training": {"insight", "scoring", "runs", *_BELOW_RUNS},
    "pages": {"config", "maps", "text", SHARED},
    "exports": {"pages", "insight", "scoring", "runs", *_BELOW_RUNS},
    "serving": {"pages", "exports", "insight", "scoring", "runs", *_BELOW_RUNS},
    "commands": {"exports", "serving", "pages", "training", "insight", "scoring", "runs", *_BELOW_RUNS},
    "cli": {"config", SHARED},
    ENTRY: {"cli", "exports", "insight", "scoring", "runs", *_BELOW_RUNS},
}
ONLY_TORCH = {"kernels", "attention", "models"}
STANDARD = {"abc", "collections", "contextlib", "copy", "dataclasses", "functools", "math", "typing", "warnings"}
TENSOR_LIBRARIES = {"torch", "jaxtyping", "entmax"} | STANDARD
SEES_ARRAYS = {
    "plots",
    "viewer",
    "film",
    "attention_map",
    "map_files",
    "words",
    "links",
    "symmetrization",
    "diagnostics",
}
HYDRA = {PACKAGE / "config" / "nodes.py", *(PACKAGE / "cli").glob("*.py")}


@functools.cache
def nodes(file: Path) -> list[ast.AST]:
    """All nodes of a file's syntax tree."""
    return [*ast.walk(ast.parse(file.read_text(encoding="utf-8")))]


def imports(file: Path) -> list[str]:
    """Modules that a file imports anywhere in it; for `from a import b` also 'a.b'."""
    found = []
    for node in nodes(file):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file} has a relative import"
            found += [f"{node.module}.{alias.name}" for alias in node.names]
    return found


def package(file: Path) -> str:
    parts = file.relative_to(PACKAGE).parts
    if len(parts) > 1:
        return parts[0]
    return SHARED if file.stem in SHARED.split(", ") else ENTRY


def forbidden_imports(file: Path) -> Iterator[str]:
    own = package(file)
    for module in imports(file):
        if not module.startswith("nmt."):
            continue
        other = module.split(".")[1]
        if other in ("errors", "sites"):  # whatever can refuse a value, or names an attention site
            continue
        other = SHARED if other in SHARED.split(", ") else ENTRY if other == "run" else other
        if other != own and other not in EDGES[own]:
            yield f"{file}: {own} must not import {other} ({module})"
        if own == "commands" and other == own and module.split(".")[2] != f"{file.stem}_settings":
            yield f"{file} imports another command ({module}): put what they share into a package below"


def test_imports_run_one_way() -> None:
    assert [fault for file in FILES for fault in forbidden_imports(file)] == []


@pytest.mark.parametrize(
    ("file", "line", "faults"),
    [
        ("models/a.py", "from nmt.data.batch import Batch", 1),
        ("models/a.py", "import nmt.attention.masks, nmt.serving.page", 1),
        ("commands/a.py", "from nmt.commands.b import b", 1),
        ("commands/a.py", "from nmt.commands.a_settings import Settings", 0),
        ("a.py", "from nmt.serving.page import FILES", 1),
    ],
)
def test_a_forbidden_import_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, line: str, faults: int
) -> None:
    monkeypatch.setattr(sys.modules[__name__], "PACKAGE", tmp_path)
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text(line)
    assert len([*forbidden_imports(tmp_path / file)]) == faults


def test_libraries_stay_where_they_belong() -> None:
    for file in FILES:
        roots = {module.split(".")[0] for module in imports(file)} - {"nmt"}
        if file not in HYDRA:
            assert not roots & {"hydra", "omegaconf"}, file
        if package(file) in ONLY_TORCH:
            assert roots <= TENSOR_LIBRARIES, file
        if file.stem in SEES_ARRAYS:
            assert "torch" not in roots, file


def test_code_has_no_assert_and_no_bare_except() -> None:
    for file in FILES:
        for node in nodes(file):
            assert not isinstance(node, ast.Assert), f"assert in line {node.lineno} of {file}"
            bare = isinstance(node, ast.ExceptHandler) and node.type is None
            assert not bare, f"bare except in line {node.lineno} of {file}"


@pytest.mark.parametrize("package_name", ["attention", "models"])
def test_only_the_normalizers_know_minus_infinity(package_name: str) -> None:
    """Beam search ranks by scores and may use it; an attention must never, since a row of it gives NaN."""
    for file in (PACKAGE / package_name).rglob("*.py"):
        if file.name != "normalizers.py":
            text = file.read_text(encoding="utf-8")
            assert not any(word in text for word in ('"-inf"', "-inf", "-math.inf", "-torch.inf", "finfo"))


def test_no_module_is_called_after_nothing() -> None:
    names = {file.stem for file in FILES}
    assert not names & {"utils", "helpers", "common", "misc"}


SETTINGS = sorted(f"nmt.commands.{file.stem}" for file in (PACKAGE / "commands").glob("*_settings.py"))


@pytest.mark.parametrize(
    ("modules", "heavy"),
    [
        (["nmt", "nmt.cli", "nmt.errors", "nmt.files", "nmt.cli.help", "nmt.config.messages"], {"torch", "hydra"}),
        (["nmt.cli.command", *SETTINGS], {"torch", "lightning", "datasets", "numpy", "matplotlib"}),
    ],
)
def test_an_empty_import_is_light(modules: list[str], heavy: set[str]) -> None:
    """The commands show --help and refuse a mistake before they load torch, which takes seconds."""
    script = f"import sys, {', '.join(modules)}; print({heavy} & set(sys.modules))"
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ended.stdout == "set()\n"


def test_test_files_have_names_of_their_own() -> None:
    """pytest imports them by their names alone."""
    names = [file.name for file in Path(__file__).parent.rglob("test_*.py")]
    assert {name for name in names if names.count(name) > 1} == set()


def test_no_two_modules_have_the_same_name() -> None:
    """But for an entry point and its command, nmt/train.py and nmt/commands/train.py."""
    names = [file.stem for file in FILES if file.stem != "__init__" and file.parent != PACKAGE]
    assert {name for name in names if names.count(name) > 1} == set()


SCRIPTS = sorted((PACKAGE.parent / "scripts").rglob("*.py"))


def test_only_lf_and_crlf_end_a_line() -> None:
    """nmt/text/lines.py reads text. `splitlines` ends lines at nine other characters, a file in text mode at a CR."""
    for file in (*FILES, *SCRIPTS):
        for node in nodes(file):
            name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
            assert name not in {"splitlines", "readlines"}, f"{name} in line {node.lineno} of {file}"
            reads = node.iter if isinstance(node, ast.For | ast.comprehension) else None
            assert reads is None or ast.unparse(reads) != "sys.stdin", f"{file}: sys.stdin ends a line at a CR"
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("open") and PACKAGE in file.parents:
                text = any(keyword.arg == "encoding" for keyword in node.keywords)
                place = f"line {node.lineno} of {file}"
                assert not text or ast.literal_eval(node.args[0]) == "w", f"a file read in text mode in {place}"
