"""nmt.ablate_attention on tiny runs."""

import csv
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from attention_runs import job

from nmt.commands.ablate_attention import ablate_attention
from nmt.errors import Mistake


def test_ablations_of_every_head(run: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # A model of so few steps translates to the greatest length.
    short = shutil.copytree(run, tmp_path / "short", ignore=shutil.ignore_patterns("checkpoints"))
    config = yaml.safe_load((short / "config.yaml").read_text(encoding="utf-8"))
    config["search"] |= {"beam_size": 1, "constraints": {**config["search"]["constraints"], "max_length": 3}}
    (short / "config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    ablate_attention(job("ablate_attention", run_dir=str(short), device="cpu", sentences=3, out=str(tmp_path)))
    output = capsys.readouterr().out
    with (tmp_path / "ablation.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    heads = {"maps_bahdanau": 1, "maps_luong": 2, "maps_transformer": 3 * 2 * 2}[run]
    places = {(row["site"], row["layer"], row["head"], row["way"]) for row in rows}
    assert len(places) == len(rows) == 4 * heads
    losses = [float(row["change in log-probability per piece"]) for row in rows]
    assert losses == sorted(losses)
    assert any(losses), "no ablation changed anything"
    assert output.startswith("Intact: -")
    assert all(np.isfinite(float(row["change in BLEU"])) for row in rows)


def test_bleu_can_be_left_out(here: Path, tmp_path: Path) -> None:
    config = {"run_dir": "maps_luong", "device": "cpu", "out": str(tmp_path), "bleu": False, "ways": ["off"]}
    ablate_attention(job("ablate_attention", **config, source="in.en", reference="in.vi"))
    with (tmp_path / "ablation.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2
    assert "change in BLEU" not in rows[0]
    record = json.loads((tmp_path / "ablation.json").read_text())
    assert (record["sentences"], record["intact"]["bleu"]) == (2, None)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"ways": ["of"]}, "Unknown ways 'of'. Did you mean 'off'?"),
        ({"site": "self"}, "There is no attention at site 'self', only at cross; choose one, or all"),
        ({"sentences": 0}, "sentences is 0; it must be a whole number of at least 1"),
        ({"ways": []}, "ways is an empty list; name at least one of off, uniform, shuffled, frozen"),
        ({"source": "in.en"}, "source is given without reference"),
    ],
)
def test_invalid_settings_are_refused(here: Path, changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(Mistake, match=sentence.replace("?", r"\?")):
        ablate_attention(job("ablate_attention", run_dir="maps_luong", device="cpu", **changes))
