"""scripts/studies/attribution_error.py: one row for each run and method, with the rates that nmt.align prints."""

from pathlib import Path

import pytest
from attention_runs import job

from nmt.commands.align import align
from nmt.data.corpus import Pairs
from nmt.maps.links import Alignment
from nmt.scoring.alignment_error import Gold
from scripts.studies.attribution_error import first, of_runs


def test_the_rates_are_those_of_the_command(here: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    methods = ["attention", "occlusion"]
    rows = of_runs([Path("maps_luong")], methods, "test", None).rows
    assert [row[:2] for row in rows] == [["maps_luong", method] for method in methods]
    for row, method in zip(rows, methods, strict=True):
        align(job("align", run_dir="maps_luong", device="cpu", method=method, out=str(tmp_path)))
        shown = next(line for line in capsys.readouterr().out.splitlines() if line.startswith(f"| {row[2]}"))
        cells = [cell.strip() for cell in shown.strip("|").split("|")]
        assert cells[:3] == row[2:5]
        assert row[5] in cells


def test_a_number_of_sentences_limits_a_split() -> None:
    links = [Alignment(frozenset({(0, 0)}), frozenset({(0, 0)})), Alignment(frozenset(), frozenset())]
    gold = Gold(Pairs(["one", "two"], ["một", "hai"]), links)
    assert first(gold, 1) == Gold(Pairs(["one"], ["một"]), links[:1])
    assert first(gold, None) == gold
    assert first(None, 1) is None
