"""nmt.align on tiny runs."""

import csv
from pathlib import Path

import numpy as np
import pytest
from attention_runs import job

import nmt.commands.align
from nmt.commands.align import align
from nmt.errors import Mistake
from nmt.maps.links import Alignment, MapSelector
from nmt.maps.symmetrization import LINKS
from nmt.scoring.alignment_error import MapsWithGold, rates_by_way


def test_alignment_rates_of_every_map(run: str, capsys: pytest.CaptureFixture[str]) -> None:
    align(job("align", run_dir=run, device="cpu"))
    output = capsys.readouterr().out
    with (Path(run) / "evaluation" / "test" / "alignment.csv").open(newline="") as file:
        *rows, diagonal = csv.DictReader(file)
    layers, heads = {"maps_bahdanau": (1, 1), "maps_luong": (1, 2), "maps_transformer": (2, 2)}[run]
    assert len(rows) == 2 * {(1, 1): 1, (1, 2): 3, (2, 2): 7}[layers, heads]
    valid = [float(row["AER valid"]) for row in rows]
    assert valid == sorted(valid)
    assert (diagonal["row"], diagonal["AER"]) == ("diagonal", "0.000")
    assert f"Chosen map: AER {rows[0]['AER']} (row that {rows[0]['row']}" in output
    with (Path(run) / "evaluation" / "test" / "alignment_links.csv").open(newline="") as file:
        ways = {row["links"]: row for row in csv.DictReader(file)}
    assert list(ways) == [*LINKS, "diagonal"]
    assert ways["argmax"]["AER"] == rows[0]["AER"]
    assert float(ways["union"]["recall"]) >= float(ways["argmax"]["recall"])
    assert float(ways["union"]["recall"]) >= float(ways["intersection"]["recall"])
    assert "the diagonal 0.000)" in output


def test_without_a_gold_alignment_the_splits_that_have_one_are_named(here: Path) -> None:
    with pytest.raises(Mistake, match=r"no gold alignments for in\.en\. Splits that have them: valid, test\. Use"):
        align(job("align", run_dir="maps_luong", device="cpu", source="in.en", reference="in.vi"))


def test_the_note_says_if_the_choice_was_made_on_the_measured_sentences(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    align(job("align", run_dir="maps_transformer", device="cpu", split="valid", out="of_valid"))
    assert "chosen on the validation split, on the sentences measured here;" in capsys.readouterr().out
    align(job("align", run_dir="maps_transformer", device="cpu"))
    assert "chosen on the validation split;" in capsys.readouterr().out


def test_without_any_gold_alignment_the_error_says_so(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nmt.commands.align, "gold_file", lambda *_: None)
    with pytest.raises(Mistake, match=r"no gold alignments for in\.en\. No split of the run's data has them\. Use"):
        align(job("align", run_dir="maps_luong", device="cpu", source="in.en", reference="in.vi"))


def test_without_any_link_there_is_no_rate() -> None:
    """The gold alignment has only possible links, and no weight reaches the threshold."""
    weights = np.full((1, 1, 3, 4), 0.25)
    maps = MapsWithGold([weights], [["▁a", "▁b", "▁c"]], [["▁x", "▁y"]], [Alignment(frozenset(), frozenset({(0, 0)}))])
    found = rates_by_way(maps, MapSelector("predicts", 0, 0), 0.9)
    assert found["threshold"] is None
    assert found["argmax"] is not None


@pytest.mark.parametrize("threshold", [0, 1.1, True, "x"])
def test_a_threshold_is_above_0_and_at_most_1(threshold: object) -> None:
    with pytest.raises(Mistake, match=f"threshold is {str(threshold).lower()}; it must be above 0 and at most 1"):
        align(job("align", run_dir="nowhere", threshold=threshold))
