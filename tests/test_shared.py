"""What is made once for all processes of a test session."""

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from shared import made_once


@pytest.mark.parametrize("worker", [None, "gw1"])
def test_a_folder_is_made_once_and_every_process_has_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, worker: str | None
) -> None:
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    if worker is not None:
        monkeypatch.setenv("PYTEST_XDIST_WORKER", worker)
    made: list[Path] = []

    def make(folder: Path) -> None:
        made.append(folder)
        (folder / "below").mkdir()
        (folder / "below" / "file").write_text(f"{len(made)}")
        if len(made) == 1:
            raise RuntimeError("the first process fails")

    def factory(process: str) -> Any:
        """The folders for temporary files of a process."""
        own = tmp_path / process
        return SimpleNamespace(getbasetemp=lambda: own, mktemp=lambda name: make_folder(own / name))

    def make_folder(folder: Path) -> Path:
        folder.mkdir(parents=True)
        return folder

    with pytest.raises(RuntimeError):
        made_once(factory("gw0"), "it", make)
    found: list[Path] = []
    threads = [
        threading.Thread(target=lambda name: found.append(made_once(factory(name), "it", make)), args=(name,))
        for name in ("gw1", "gw2", "gw3")
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 3
    assert len(made) == (2 if worker else 4)
    (found[0] / "below" / "file").write_text("changed")
    assert all((folder / "below" / "file").read_text() in "234" for folder in found[1:])
