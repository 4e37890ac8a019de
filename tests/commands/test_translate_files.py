"""nmt.translate input=FILES output=FOLDER as a user runs it."""

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.mark.usefixtures("finished")
def test_a_job_that_is_killed_again_and_again_translates_every_line_once(
    session_corpus: Path, corpus: Path, start: Callable[..., Any], command: Callable[..., Any]
) -> None:
    """It dies within a part, before a part gets its name, and between joining the parts and deleting them."""
    run, text = f"run_dir={session_corpus / 'run'}", (corpus / "train.en").read_text()
    plain = command("translate", run, "search.beam_size=1", text=text)
    assert plain.code == 0, plain.errors
    job = ["translate", run, "search.beam_size=1", "input=train.en", "output=out", "shard_lines=80"]
    # Of the 211 lines, the first process translates a part and 19 lines, and the second one none.
    for dies in (
        ("nmt.pace:Pace.__call__", 99),
        ("os:fsync", 1),
        ("nmt.decoding.translation_job:remove", 1),
    ):
        process = start(*job, dies=dies)
        _, errors = process.communicate()
        assert process.returncode == -signal.SIGKILL, errors
    ended = command(*job)
    assert (ended.code, ended.output) == (0, "out/train.vi\n"), ended.errors
    assert (corpus / "out" / "train.vi").read_text() == plain.output
    assert sorted(path.name for path in (corpus / "out").iterdir()) == ["job.json", "train.vi"]
