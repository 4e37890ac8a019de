"""scripts/bench/viewer_cost.py, on a page of two short sentences."""

import json
import shutil
from argparse import ArgumentParser, Namespace

import numpy as np
import pytest

from nmt.errors import Mistake
from scripts.bench import viewer_cost
from scripts.browsers import CHROMIUM


def options(*given: str) -> Namespace:
    parser = ArgumentParser()
    viewer_cost.add_arguments(parser)
    return parser.parse_args(given)


def test_random_maps_are_weights_of_all_sites() -> None:
    sentences = [*viewer_cost.made_up(sentences=3, tokens=5, layers=2, heads=7)]
    assert [sentence.line for sentence in sentences] == [1, 2, 3]
    for item in (item for sentence in sentences for item in sentence.maps):
        assert item.weights.shape == (2, 7, 5, 5)
        assert item.weights.sum(axis=-1) == pytest.approx(1, abs=2 * 5 * float(np.finfo(np.float32).eps))
    assert {item.site for item in sentences[0].maps} == {"encoder_self", "decoder_self", "cross"}


@pytest.mark.soak
def test_the_page_is_opened_and_changed() -> None:
    pytest.importorskip("playwright.sync_api", reason="Playwright is not installed (pip install playwright).")
    if not any(map(shutil.which, CHROMIUM)):
        pytest.skip("no browser on PATH (chromium, chromium-browser or google-chrome)")
    record = viewer_cost.run(options("--sentences", "2", "--tokens", "3", "--heads", "2", "--rounds", "2"))
    assert json.loads(json.dumps(record)) == record
    assert [len(found) for found in record["seconds"].values()] == [2, 2]
    assert viewer_cost.table(record).count("\n| ") == 2


def test_the_table_has_medians_and_spreads() -> None:
    sizes = {"sentences": 5, "tokens": 7, "heads": 3, "layers": 2}
    seconds = {"first": [3.0, 1.0, 2.5], "another": [0.5]}
    table = viewer_cost.table({**sizes, "page_bytes": 1_250_000, "seconds": seconds})
    assert table.endswith("| 1.2 MB | 2.50 s | 1.00 to 3.00 s | 0.50 s | 0.50 to 0.50 s |")


def test_what_cannot_be_measured_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Mistake, match="All sizes must be at least 1, --sentences and --tokens at least 2"):
        viewer_cost.run(options("--sentences", "1"))
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(Mistake, match="No browser found on PATH; install one of chromium"):
        viewer_cost.run(options("--sentences", "2", "--tokens", "3", "--heads", "1", "--layers", "1"))
