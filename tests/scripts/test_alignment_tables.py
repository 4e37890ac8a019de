"""scripts/studies/alignment_tables.py: the rates of runs as tables."""

from pathlib import Path
from typing import Any

import torch
from jobs import run_settings

from nmt.config.nodes import make
from nmt.maps.links import MapSelector, Rates
from nmt.maps.words import PIECE_ROWS
from nmt.models import VocabularySizes
from nmt.runs.directory import RunDirectory
from nmt.runs.load import LoadedRun
from nmt.scoring.alignment_error import AlignmentQuality
from scripts.studies.alignment_tables import of_maps, of_runs


def found() -> AlignmentQuality:
    """Of 2 layers and 1 head: the error rate of row s and layer l is 0.s(l + 1), that of the mean of layers 0.s9."""
    places = [(None, None), (0, 0), (1, 0)]
    table = {
        MapSelector(row, layer, head): Rates(number / 10 + (9 if layer is None else layer + 1) / 100, 0.5, 0.25)
        for number, row in enumerate(PIECE_ROWS)
        for layer, head in places
    }
    choice = MapSelector("predicts", 1, 0)
    return AlignmentQuality(table[choice], choice, "", Rates(0.75, 0.5, 0.5), table, table)


def test_a_row_for_each_run_with_the_diagonal_beside(tmp_path: Path) -> None:
    absent: Any = None
    sizes = VocabularySizes(11, 11, joint=True)
    settings = run_settings("model=transformer")
    model = make(settings.model)(vocabulary=sizes)
    trained = LoadedRun(RunDirectory(tmp_path), settings, absent, model, torch.device("cpu"))
    [run] = of_runs([(tmp_path / "one", trained, found())]).rows
    choice, rates = ["predicts", "1", "0"], ["0.020", "0.020", "0.500", "0.250"]
    assert run == [str(tmp_path / "one"), "Transformer", "ScaledDot", "Global", *choice, *rates, "0.750"]


def test_every_map_has_a_cell() -> None:
    first, second = of_maps(found())
    assert first.header == ["row that predicts", "mean of heads", "head 0"]
    assert first.rows == [["mean of layers", "0.090", ""], ["layer 0", "", "0.010"], ["layer 1", "", "0.020"]]
    assert [row[1:] for row in second.rows] == [["0.190", ""], ["", "0.110"], ["", "0.120"]]
