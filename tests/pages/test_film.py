"""The film of a run's probes."""

import shutil
from pathlib import Path

import pytest
from attention_runs import job

from nmt.commands.draw_attention import draw_attention
from nmt.pages.film import write_film


def test_the_probes_of_a_run_are_drawn_together(here: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    probes = ["maps_luong/probes", "maps_bahdanau/probes/step_0000004"]
    draw_attention(job("draw_attention", maps=probes, formats=["viewer"], out=str(tmp_path)))
    page = (tmp_path / "viewer.html").read_text(encoding="utf-8")
    assert "step 4 (maps_luong/probes/step_0000004)" in page
    assert "step 4 (maps_bahdanau/probes/step_0000004)" in page
    assert '"step 2"' in page


def test_a_probe_that_was_not_finished_is_no_part_of_the_film(here: Path) -> None:
    probes = here / "maps_luong" / "probes"
    (probes / "step_0000003" / "maps").mkdir(parents=True)
    write_film(probes)
    page = (probes / "viewer.html").read_text(encoding="utf-8")
    shutil.rmtree(probes / "step_0000003")
    assert '"step 2"' in page
    assert '"step 3"' not in page


def test_a_damaged_probe_costs_the_film_and_not_the_run(here: Path, caplog: pytest.LogCaptureFixture) -> None:
    probes = here / "maps_luong" / "probes"
    file = next((probes / "step_0000002" / "maps").iterdir())
    whole = file.read_bytes()
    file.write_bytes(b"")
    write_film(probes)
    file.write_bytes(whole)
    assert (
        f"film of the probes in {probes} could not be written: {file} is missing or differs from its "
        "manifest" in caplog.text
    )
