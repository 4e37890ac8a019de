"""Files for a code host and for containers: they are valid YAML and name what exists."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
YAML_FILES = [ROOT / "compose.yaml", *sorted((ROOT / ".github").rglob("*.yml"))]


@pytest.mark.parametrize("file", YAML_FILES, ids=lambda file: file.name)
def test_the_files_are_valid_yaml(file: Path):
    assert yaml.safe_load(file.read_text(encoding="utf-8"))


def test_the_workflows_run_targets_of_make():
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    workflows = [file.read_text(encoding="utf-8") for file in (ROOT / ".github" / "workflows").iterdir()]
    named = {target for text in workflows for target in re.findall(r"run: make (\w+)", text)}
    assert named == {"test", "docs"}
    assert named <= targets


def test_what_installs_packages_and_runs_notebooks_may_not_publish():
    pages = yaml.safe_load((ROOT / ".github" / "workflows" / "pages.yml").read_text(encoding="utf-8"))
    assert pages["permissions"] == {}
    rights = {name: job["permissions"] for name, job in pages["jobs"].items()}
    assert rights == {"build": {"contents": "read"}, "deploy": {"pages": "write", "id-token": "write"}}
    assert not [step for step in pages["jobs"]["deploy"]["steps"] if "run" in step]


def test_a_workflow_without_chromium_fails_before_the_tests_that_would_be_skipped():
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "test.yml").read_text(encoding="utf-8"))
    commands = [step["run"] for step in workflow["jobs"]["test"]["steps"] if "run" in step]
    assert commands == ["chromium --version", "make test"]


def test_the_image_copies_and_installs_what_exists():
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = {name for line in re.findall(r"^COPY (.*) \S+$", text, re.MULTILINE) for name in line.split()}
    assert copied == allowed
    assert all((ROOT / name).exists() for name in copied)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert set(re.findall(r"'\.\[(\w+)\]'", text)) <= set(project["project"]["optional-dependencies"])
    # The wheel is built from these folders.
    assert set(project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]) <= copied
    assert set(project["project"]["license-files"]) <= copied | {"models/README.md"}
