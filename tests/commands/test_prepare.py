import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nmt.commands.prepare import prepare
from nmt.config.job import Job


def cells(output: str, kind: str) -> list[str]:
    [line] = [line for line in output.splitlines() if line.startswith(f"| {kind} ")]
    return [cell.strip() for cell in line.split("|")[2:-1]]


def test_the_report_tells_what_is_wrong_and_what_is_left(
    corpus: Path, job: Callable[..., Job], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(corpus)
    valid = [(corpus / f"valid.{language}").read_text(encoding="utf-8") for language in ("en", "vi")]
    for language, lines in zip(("en", "vi"), valid, strict=True):
        with (corpus / f"train.{language}").open("a", encoding="utf-8", newline="") as file:
            file.write("\r\n" + lines)
    prepare(job("train", filters__drop_overlap=True, cache_dir="cache"))
    output = capsys.readouterr().out
    assert cells(output, "pairs") == ["219", "7", "1"]
    assert cells(output, "a side is empty") == ["1", "0", "0"]
    assert cells(output, "lines of a side that end in CR LF") == ["2", "0", "0"]
    assert int(cells(output, "a side is in another split")[0]) >= 7
    assert "train, line 212: a side is empty" in output.splitlines()
    assert re.search(r"^Training data: 219 pairs, \d+ kept .*; dropped: .*1 empty", output, re.MULTILINE)
    assert list((corpus / "cache").iterdir())
    assert not (corpus / "run").exists()


def test_a_mistake_is_told_as_training_would(command: Callable[..., Any], tiny: Callable[..., list[str]]) -> None:
    ended = command("prepare", *tiny(data__train="[trian]"))
    assert (ended.code, ended.output) == (2, "")
    assert ended.errors.startswith("error: No file trian.en")
