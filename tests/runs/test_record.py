"""What a run's record says about the code that made it."""

import subprocess
from pathlib import Path

import pytest

from nmt.runs import record


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with one commit, in place of that of the package."""
    monkeypatch.setattr(record, "__file__", str(tmp_path / "nmt" / "runs" / "record.py"))
    (tmp_path / "configs" / "scorer").mkdir(parents=True)
    (tmp_path / "code.py").write_text("one = 1\n")
    (tmp_path / ".gitignore").write_text("runs/\n")
    for arguments in (
        ["init", "-q"],
        ["add", "."],
        ["-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-qm", "a"],
    ):
        subprocess.run(["git", *arguments], cwd=tmp_path, check=True)
    return tmp_path


@pytest.mark.parametrize(
    ("changed", "noted"),
    [
        ("code.py", True),
        ("configs/scorer/mine.yaml", True),
        ("my_scorer.py", True),
        ("my_text.en", False),
        ("runs/script.py", False),
    ],
)
def test_a_commit_that_does_not_identify_the_code_ends_in_changes(checkout: Path, changed: str, noted: bool) -> None:
    commit = record.git_commit()
    assert commit is not None
    assert len(commit) == 40
    (checkout / changed).parent.mkdir(exist_ok=True)
    (checkout / changed).write_text("two = 2\n")
    assert record.git_commit() == commit + ("+changes" if noted else "")
