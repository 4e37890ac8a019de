"""The house rules that a program can check: who imports whom, and how long things are."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "nmt"
FILES = sorted(PACKAGE.rglob("*.py"))
ENTRY = "entry points"
EDGES = {
    "text": set(),
    "data": {"text"},
    "attention": set(),
    "models": {"attention"},
    "decoding": {"data", "text"},
    "evaluation": {"data", "text"},
    "training": {"decoding", "evaluation", "data", "text", "models"},
    "run": {"training", "decoding", "evaluation", "data", "text", "models", "attention"},
    ENTRY: {"run"},
}
# Where a package is meant to see only one module of another, or none of a library.
ONLY_MODULE = {("training", "models"): "nmt.models.base"}
ONLY_TORCH = {"attention", "models"}
STANDARD = {"abc", "collections", "contextlib", "functools", "math", "typing", "warnings"}
TENSOR_LIBRARIES = {"torch", "jaxtyping", "entmax"} | STANDARD
SEES_ARRAYS = {"plots", "viewer", "maps", "map_files", "words", "alignment", "symmetrization", "diagnostics"}
LONGEST_FILE, LONGEST_FUNCTION = 300, 40


def imports(file: Path) -> list[str]:
    """Modules that a file imports anywhere in it; for `from a import b` also 'a.b'."""
    found = []
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file} has a relative import"
            found += [f"{node.module}.{alias.name}" for alias in node.names]
    return found


def package(file: Path) -> str:
    parts = file.relative_to(PACKAGE).parts
    return parts[0] if len(parts) > 1 else ENTRY


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(PACKAGE)))
def test_imports_run_one_way(file: Path) -> None:
    own = package(file)
    for module in imports(file):
        if not module.startswith("nmt."):
            continue
        other = module.split(".")[1]
        if other == own:
            continue
        assert other in EDGES[own], f"{own} must not import {other} ({module})"
        only = ONLY_MODULE.get((own, other))
        assert only is None or module.startswith(only), f"{own} may import {only} only, not {module}"


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(PACKAGE)))
def test_libraries_stay_where_they_belong(file: Path) -> None:
    roots = {module.split(".")[0] for module in imports(file)} - {"nmt"}
    if file != PACKAGE / "run" / "compose.py":
        assert not roots & {"hydra", "omegaconf"}
    if package(file) in ONLY_TORCH:
        assert roots <= TENSOR_LIBRARIES
    if file.stem in SEES_ARRAYS:
        assert "torch" not in roots


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(PACKAGE)))
def test_files_and_functions_are_short(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= LONGEST_FILE
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            length = (node.end_lineno or 0) - node.lineno + 1
            assert length <= LONGEST_FUNCTION, f"{node.name} has {length} lines"


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(PACKAGE)))
def test_code_has_no_assert_and_no_bare_except(file: Path) -> None:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        assert not isinstance(node, ast.Assert), f"assert in line {node.lineno}"
        assert not (isinstance(node, ast.ExceptHandler) and node.type is None), f"bare except in line {node.lineno}"


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


def test_an_empty_import_is_light() -> None:
    """`import nmt` must not load torch: the commands refuse a mistake before they do."""
    modules = "nmt, nmt.run, nmt.run.exits, nmt.run.help, nmt.run.refusals"
    script = f"import sys, {modules}; print({{'torch', 'lightning', 'datasets', 'hydra'}} & set(sys.modules))"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout == "set()\n"


def test_test_files_have_names_of_their_own() -> None:
    """pytest imports them by their names alone."""
    names = [file.name for file in Path(__file__).parent.rglob("test_*.py")]
    assert {name for name in names if names.count(name) > 1} == set()
