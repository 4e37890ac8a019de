"""Training corpora in several files, named by a pattern."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml


def test_a_run_keeps_the_corpora_that_matched_its_pattern(
    corpus: Path, command: Callable[..., Any], tiny: Callable[..., list[str]]
) -> None:
    (corpus / "parts").mkdir()
    for language in ("en", "vi"):
        lines = (corpus / f"train.{language}").read_text().splitlines(keepends=True)
        (corpus / "parts" / f"1.{language}.gz").write_bytes(gzip.compress("".join(lines[:100]).encode()))
        (corpus / "parts" / f"2.{language}").write_text("".join(lines[100:150]))
    sides = [(corpus / f"train.{language}").read_text().splitlines()[150:] for language in ("en", "vi")]
    table = "".join(f"{source}\t{target}\n" for source, target in zip(*sides, strict=True))
    (corpus / "parts" / "3.tsv.gz").write_bytes(gzip.compress(table.encode()))
    run = tiny(data__train="[parts/*,parts/*.tsv]", trainer__max_steps=2, validation__every=2)
    first = command("train", *run, "resume=auto")
    assert first.code == 0, first.errors
    assert yaml.safe_load((corpus / "run" / "config.yaml").read_text())["data"]["train"] == [
        "parts/1",
        "parts/2",
        "parts/3.tsv.gz",
    ]
    assert "211 pairs" in first.errors
    report = command("prepare", *run)
    assert report.code == 0, report.errors
    assert "Training data: 211 pairs" in report.output
    for language in ("en", "vi"):  # a part that comes later belongs to other runs
        (corpus / "parts" / f"3.{language}").write_text("one.\n")
    again = command("train", *run, "trainer.max_steps=4", "resume=auto")
    assert again.code == 0, again.errors
    assert "211 pairs" in again.errors
    assert json.loads((corpus / "run" / "metrics.json").read_text())["steps"] == 4
