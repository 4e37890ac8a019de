"""requirements/*.txt fit pyproject.toml and constraints.txt."""

import re
import tomllib
from pathlib import Path

from scripts.lock_requirements import EXTRAS, TORCH_ALONE, TORCH_FOR_CPUS

ROOT = Path(__file__).resolve().parents[2]
FILES = [ROOT / "requirements" / f"{name}.txt" for name in ("base", *EXTRAS)]


def pins(file: Path) -> dict[str, set[str]]:
    """The versions of each package; there are several where they depend on the version of Python."""
    found: dict[str, set[str]] = {}
    for name, version in re.findall(r"^([\w.-]+)==([\w.+]+)", file.read_text(encoding="utf-8"), re.MULTILINE):
        found.setdefault(name, set()).add(version)
    return found


def test_every_package_has_hashes_and_one_version() -> None:
    versions: dict[str, set[str]] = {}
    for file in FILES:
        text = file.read_text(encoding="utf-8")
        requirements = re.split(r"\n(?=\w)", text)[1:]
        assert requirements
        assert [line for line in requirements if "--hash=sha256:" not in line] == []
        assert "http:" not in text
        assert "https:" not in text
        for name, found in pins(file).items():
            assert versions.setdefault(name, found) == found, f"{name} in {file.name}"
    assert not [name for name in versions if TORCH_ALONE.match(name)]
    assert TORCH_FOR_CPUS in FILES[0].read_text(encoding="utf-8")


def test_the_lock_files_have_the_versions_of_the_constraints_and_every_requirement() -> None:
    locked = {name: versions for file in FILES for name, versions in pins(file).items()}
    constraints = pins(ROOT / "constraints.txt")
    wrong = {name: versions for name, versions in constraints.items() if locked.get(name, versions) != versions}
    assert not wrong, "run python -m scripts.lock_requirements"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = [*project["dependencies"], *(line for extra in EXTRAS for line in project["optional-dependencies"][extra])]
    names = {match[0] for line in needed if (match := re.match(r"[\w-]+", line))} - {project["name"]}
    assert names <= set(locked)
