"""Text made by a finished run is a training corpus: distillation, and back-translation the other way around."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.mark.parametrize(
    ("direction", "read", "made"), [pytest.param("en-vi", "en", "vi", marks=pytest.mark.soak), ("vi-en", "vi", "en")]
)
def test_a_student_reads_what_its_teacher_wrote(
    command: Callable[..., Any], corpus: Path, tiny: Callable[..., list[str]], direction: str, read: str, made: str
) -> None:
    # A teacher of a few steps writes no sentences, and what is far too long is no fault of the way.
    few = {"trainer__max_steps": 3, "filters__max_ratio": 50.0, "filters__drop_duplicates": "false"}
    teacher = command("train", *tiny(**few, direction=direction, run_dir="teacher"))
    assert teacher.code == 0, teacher.errors
    text = "".join((corpus / f"train.{read}").read_text(encoding="utf-8").splitlines(keepends=True)[:31])
    search = ("search.constraints.min_length=4", "search.beam_size=1")
    written = command("translate", "run_dir=teacher", *search, text=text)
    assert written.code == 0, written.errors
    (corpus / f"made.{made}").write_text(written.output, encoding="utf-8")
    (corpus / f"made.{read}").write_text(text, encoding="utf-8")
    assert written.output.count("\n") == text.count("\n")
    student = command("train", *tiny(**few, data__train="[train,made]", run_dir="student"))
    assert student.code == 0, student.errors
    assert f"made.{made}" in json.loads((corpus / "student" / "metrics.json").read_text())["corpora"]
    assert f"Training data: {211 + 31} pairs" in student.errors
