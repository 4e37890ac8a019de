"""Standard input of nmt.translate: its lines, and the one that is not UTF-8."""

import io
import sys
from pathlib import Path
from typing import Any

import pytest

import nmt.run.translate
from nmt.decoding.translator import Translator
from nmt.run.compose import Job
from nmt.run.exits import report
from nmt.run.translate import input_lines, translate


class Upper(Translator):
    """Streams as a translator does, but translates into capitals."""

    def __init__(self) -> None:
        pass

    def _translate(self, lines: Any, first_line: int) -> list[str]:
        return [line.upper() for line in lines]


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Job:
    monkeypatch.setattr(nmt.run.translate, "load_run", lambda *_: None)
    monkeypatch.setattr(nmt.run.translate, "build_translator", lambda *_: Upper())
    config = {"run_dir": tmp_path, "device": "cpu", "search": {}, "batch_tokens": 101, "max_source_tokens": 13}
    return Job({**config, "read_ahead": 4}, (), "", None)


@pytest.mark.parametrize("bad", [1, 2, 3, 6, 11])
def test_the_lines_before_an_invalid_byte_are_translated(
    job: Job, bad: int, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    data = b"a\n" * (bad - 1) + b"\xff\n" + b"b\n" * 7
    output = io.TextIOWrapper(io.BytesIO())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    monkeypatch.setattr(sys, "stdout", output)
    with pytest.raises(ValueError, match="not UTF-8") as caught:
        translate(job)
    assert report(caught.value) == 2
    assert output.buffer.getvalue() == b"A\n" * (bad - 1)  # type: ignore[attr-defined]
    assert capfd.readouterr().err == f"error: Standard input, line {bad}: not UTF-8 (invalid start byte); convert it.\n"


def test_only_line_feeds_end_a_line() -> None:
    data = "\ufeffone\r\n\ntwo\u2028three\x85\rfour\nfive".encode()
    assert list(input_lines(io.BytesIO(data))) == ["one", "", "two\u2028three\x85\rfour", "five"]
