"""nmt.ablate_attention on tiny runs."""

import csv
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from attention_runs import job

from nmt.commands.ablate_attention import ABLATIONS, ablate_attention, mean_queries, measurable, quality
from nmt.errors import Mistake
from nmt.models import Luong
from nmt.runs.load import load_run
from nmt.scoring.test_sets import TestSet, split_test_set
from nmt.text import EOS


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
    assert [row["change in BLEU"] for row in rows] == ["", ""]
    record = json.loads((tmp_path / "ablation.json").read_text())
    assert (record["sentences"], record["intact"]["bleu"]) == (2, None)


@pytest.mark.parametrize("way", ABLATIONS)
def test_an_ablation_changes_the_model_only_inside_its_context(run: str, way: str) -> None:
    trained = load_run(Path(run), "cpu")
    test_set = measurable(trained, split_test_set(trained, "valid"), 3)
    intact = quality(trained, test_set, bleu=False, batch_tokens=1000)
    attention = trained.model.sites["cross"][0]
    with ABLATIONS[way](attention, 0, mean_queries(trained, test_set)):
        assert quality(trained, test_set, bleu=False, batch_tokens=1000) != intact
    assert quality(trained, test_set, bleu=False, batch_tokens=1000) == intact


def test_mean_queries_do_not_count_padding(here: Path) -> None:
    trained = load_run(Path("maps_transformer"), "cpu")
    test_set = measurable(trained, split_test_set(trained, "valid"), 2)
    attention = trained.model.sites["encoder_self"][0]
    asked: list[torch.Tensor] = []
    hook = attention.register_forward_pre_hook(lambda _, arguments: asked.append(arguments[0][0]))
    for source in test_set.sources:
        ids = torch.tensor([[*trained.tokenizers.source.encode(source), EOS]])
        trained.model.encode(ids, torch.ones_like(ids, dtype=torch.bool))
    hook.remove()
    torch.testing.assert_close(mean_queries(trained, test_set)[attention], torch.cat(asked, dim=1).mean(dim=1))


def test_empty_pairs_are_skipped_and_none_left_is_refused(here: Path) -> None:
    trained = load_run(Path("maps_luong"), "cpu")
    test_set = split_test_set(trained, "valid")
    mixed = TestSet(
        ["", *test_set.sources], [["x", *test_set.references[0]]], None, None, test_set.out, tokenized=False
    )
    assert measurable(trained, mixed, 2).sources == test_set.sources[:2]
    empty = TestSet([""], [["x"]], None, None, test_set.out, tokenized=False)
    with pytest.raises(
        Mistake, match="The model cannot read any of the sentence pairs, because each has a side that is empty"
    ):
        measurable(trained, empty, None)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"ways": ["of"]}, "Unknown ways 'of'. Did you mean 'off'?"),
        ({"site": "self"}, "This model has no attention at site 'self', only at cross; choose one, or all"),
        ({"sentences": 0}, "sentences is 0; it must be a whole number of at least 1"),
        ({"ways": []}, "ways is an empty list; name at least one of off, uniform, shuffled, frozen"),
        ({"source": "in.en"}, "source is given without reference"),
    ],
)
def test_invalid_settings_are_refused(here: Path, changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(Mistake, match=sentence.replace("?", r"\?")):
        ablate_attention(job("ablate_attention", run_dir="maps_luong", device="cpu", **changes))


def test_pairs_too_long_for_the_model_are_skipped(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trained = load_run(Path("maps_luong"), "cpu")
    test_set = split_test_set(trained, "valid")
    lengths = [len(trained.tokenizers.source.encode(line)) for line in test_set.sources]
    monkeypatch.setattr(Luong, "max_source", property(lambda _: max(lengths)))
    kept = measurable(trained, test_set, None).sources
    assert kept == [line for line, length in zip(test_set.sources, lengths, strict=True) if length < max(lengths)]
    assert len(kept) < len(test_set.sources)
