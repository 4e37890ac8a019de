"""The cores and threads of a process."""

import os
import platform
from pathlib import Path

import pytest

from nmt.cores import processor, threads_of_process, usable_cores
from nmt.errors import Mistake


def test_the_cores_are_those_that_this_process_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 7)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 4}, raising=False)
    assert usable_cores() == 2
    monkeypatch.delattr(os, "sched_getaffinity")  # as on macOS
    assert usable_cores() == 7
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert usable_cores() == 1


@pytest.mark.parametrize(("given", "threads"), [("", 1), ("3", 3), ("4,2", 4)])
def test_the_threads_are_the_first_number(monkeypatch: pytest.MonkeyPatch, given: str, threads: int) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", given)
    assert threads_of_process() == threads


@pytest.mark.parametrize("given", ["0", "two", ",2"])
def test_threads_that_are_no_number_are_a_mistake(monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", given)
    with pytest.raises(Mistake, match=rf"^OMP_NUM_THREADS is '{given}'; it must be an integer of at least 1\.$"):
        threads_of_process()


def test_the_processor_is_named_where_there_is_no_list_of_its_instructions(monkeypatch: pytest.MonkeyPatch) -> None:
    assert processor().strip()
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: "processor: 0\n\nprocessor: 1\n")
    assert processor().strip() == f"{platform.machine()} {platform.processor()}".strip()
