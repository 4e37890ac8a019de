"""scripts/bench/lab_cost.py, with one short sentence."""

import json
import shutil
from argparse import ArgumentParser, Namespace
from pathlib import Path

import pytest

from nmt.errors import Mistake
from nmt.runs.included import named_run
from scripts.bench import lab_cost
from scripts.browsers import CHROMIUM


def options(*given: str) -> Namespace:
    parser = ArgumentParser()
    lab_cost.add_arguments(parser)
    return parser.parse_args(given)


@pytest.mark.soak
def test_every_step_of_the_page_is_measured(here: Path, tmp_path: Path) -> None:
    pytest.importorskip("playwright.sync_api", reason="Playwright is not installed (pip install playwright).")
    if not any(map(shutil.which, CHROMIUM)):
        pytest.skip("no browser on PATH (chromium, chromium-browser or google-chrome)")
    source = tmp_path / "in.en"
    source.write_text("one two three .\none two .\n", encoding="utf-8")
    record = lab_cost.run(options("maps_transformer", str(source), "--words", "4"))
    assert json.loads(json.dumps(record)) == record
    assert record["sentences"] == 1
    first, translation, drawn, change = (found for [found] in record["seconds"].values())
    assert 0 < first <= translation <= drawn
    assert change > 0
    assert lab_cost.table(record).count("\n| ") == 5


def test_the_table_has_a_row_for_each_step() -> None:
    seconds = {step: [3.0, 1.0, 2.5] for step in lab_cost._STEPS}
    table = lab_cost.table({"sentences": 3, "words": 4, "seconds": seconds})
    assert table.count(" | 2.50 s | 1.00 to 3.00 s |") == len(lab_cost._STEPS) == 4


def test_an_included_model_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def start(run: Path, *_: object) -> None:
        raise Mistake(f"started {run}")

    (tmp_path / "in.en").write_text("one two .\n", encoding="utf-8")
    monkeypatch.setattr(lab_cost, "server", start)
    with pytest.raises(Mistake, match=f"started {named_run('en-vi')}"):
        lab_cost.run(options("en-vi", str(tmp_path / "in.en"), "--words", "3"))


def test_what_cannot_be_measured_is_refused(here: Path, tmp_path: Path) -> None:
    source = tmp_path / "in.en"
    with pytest.raises(Mistake, match="File not found"):
        lab_cost.run(options("maps_transformer", str(source)))
    source.write_text("one two .\n", encoding="utf-8")
    with pytest.raises(Mistake, match="has no sentence of 20 words; choose another --words"):
        lab_cost.run(options("maps_transformer", str(source)))
