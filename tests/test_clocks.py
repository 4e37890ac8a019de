"""No result depends on the clock of the machine: it may jump, and files may come from another time."""

import contextlib
import io
import os
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from nmt.commands.train import train
from nmt.commands.translate import translate
from nmt.config.job import Job
from nmt.data import known_files
from nmt.data.known_files import known_digest

YEAR = 365 * 86400.0


def results(job: Callable[..., Job], corpus: Path, name: str) -> tuple[bytes, bytes]:
    """The weights of a short training that is resumed, and the translations of a job in parts."""
    with contextlib.chdir(corpus), contextlib.redirect_stdout(io.StringIO()):
        for steps in (2, 4):
            train(job("train", trainer__max_steps=steps, resume=steps == 4, run_dir=name, cache_dir=f"{name}_cache"))
        translate(
            job(
                "translate",
                run_dir=name,
                input="valid.en",
                output=f"{name}_out",
                shard_lines=3,
                search__beam_size=1,
                engine="torch",
            )
        )
    return (corpus / name / "model.safetensors").read_bytes(), (corpus / f"{name}_out" / "valid.vi").read_bytes()


@pytest.mark.soak
def test_a_clock_that_jumps_changes_nothing(
    job: Callable[..., Job], corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = results(job, corpus, "steady")
    start, calls = time.time(), count()
    monkeypatch.setattr(time, "time", lambda: start + YEAR * (-30, 0, 40)[next(calls) % 3])
    for number, file in enumerate(sorted(corpus.glob("*.??"))):
        os.utime(file, (start, (0, start, start + 40 * YEAR)[number % 3]))
    assert results(job, corpus, "jumping") == before


@pytest.mark.parametrize("modified", [0, 4e9])
def test_a_change_is_seen_in_a_file_from_another_time(
    tmp_path: Path, modified: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(known_files, "_SETTLED", -1.0)
    file = tmp_path / "text"
    file.write_text("one")
    os.utime(file, (modified, modified))
    before, changed = known_digest(file, tmp_path), file.stat().st_ctime_ns
    while file.stat().st_ctime_ns == changed:  # until the clock of the file system ticks
        file.write_text("two")  # of the same size
        os.utime(file, (modified, modified))
    assert known_digest(file, tmp_path) != before
    assert len(list(tmp_path.glob("files/*"))) == (1 if modified == 0 else 0), "what is newer than now is always read"
