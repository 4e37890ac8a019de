"""The probes of a training, and their film."""

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from attention_runs import export
from jobs import job_of

from nmt.cli.compose import configuration
from nmt.commands.train import train
from nmt.data.example import Example
from nmt.insight.forced_maps import IdPair
from nmt.maps.map_files import MapFolder
from nmt.runs.load import load_run
from nmt.training.attention_probes import AttentionProbes, probe_pairs, thin_out


def test_a_training_leaves_the_same_sentences_at_each_validation_and_a_film(run: str) -> None:
    steps = sorted((Path(run) / "probes").glob("step_*"))
    assert [step.name for step in steps] == ["step_0000002", "step_0000004"]
    first, last = (list(MapFolder(step).sentences()) for step in steps)
    assert [(item.line, item.target_pieces) for item in first] == [(item.line, item.target_pieces) for item in last]
    assert len(first) == 3
    changes = [
        np.abs(one.weights - other.weights).max()
        for before, after in zip(first, last, strict=True)
        for one, other in zip(before.maps, after.maps, strict=True)
    ]
    assert max(changes) > 0, "nothing was learned between the validations"
    assert [MapFolder(step).manifest["made_from"]["step"] for step in steps] == [2, 4]
    page = (Path(run) / "probes" / "viewer.html").read_text(encoding="utf-8")
    assert "step 2" in page
    assert "step 4" in page


@pytest.mark.parametrize("name", ["maps_luong", "maps_averaged"])
def test_the_probe_of_the_best_step_is_what_the_finished_run_attends_to(here: Path, tmp_path: Path, name: str) -> None:
    """Also where the weights that are validated and kept are a moving average of those that train."""
    best = json.loads(Path(f"{name}/metrics.json").read_text())["best"]["step"]
    probe = list(MapFolder(Path(f"{name}/probes/step_{best:07}")).sentences())
    for side in ("en", "vi"):
        lines = Path(f"valid.{side}").read_text(encoding="utf-8").splitlines()
        # The probe's sentences alone, because products of other batches may round otherwise.
        (tmp_path / side).write_text("".join(f"{lines[item.line - 1]}\n" for item in probe), encoding="utf-8")
    given = {"input": str(tmp_path / "en"), "target": str(tmp_path / "vi"), "formats": []}
    again = list(export(name, tmp_path / "maps", **given).sentences())
    assert len(again) == len(probe) == 3
    for one, other in zip(probe, again, strict=True):
        np.testing.assert_array_equal(one.site("cross").weights, other.site("cross").weights)


def test_of_many_steps_every_second_one_is_deleted_but_not_the_ends(tmp_path: Path) -> None:
    steps = [tmp_path / f"step_{step:07}" for step in range(101)]
    for step in steps:
        step.mkdir()
    thin_out(steps[:100])
    assert len(list(tmp_path.iterdir())) == 100 + 1
    thin_out(steps)
    left = sorted(int(path.name.removeprefix("step_")) for path in tmp_path.iterdir())
    assert left == list(range(0, 101, 2))


def test_the_probes_are_the_first_validation_pairs_that_are_short_enough() -> None:
    long = [7] * 60
    sides = [(long, [5]), ([4], [5]), ([4], []), ([6, 7], long[:59]), ([8], [9])]
    pairs = [Example(index, *pair) for index, pair in enumerate(sides)]
    assert probe_pairs(pairs, 2) == [IdPair(2, 1, [4], [5]), IdPair(4, 1, [6, 7], long[:59])]
    assert probe_pairs(pairs, 9)[2:] == [IdPair(5, 1, [8], [9])]
    assert probe_pairs(pairs, 0) == []


def test_the_probes_of_detokenized_validation_pairs_are_plain_text(
    corpus: Path, tiny: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the training pairs and the pairs whose loss is validated are."""
    monkeypatch.chdir(corpus)
    (corpus / "valid.en").write_text("one two .\n", encoding="utf-8")
    (corpus / "valid.vi").write_text("một hai .\n", encoding="utf-8")
    composed = configuration("train", tiny(data__detokenize="[valid]", validation__probes=1, trainer__max_steps=2))
    train(job_of("train", composed))
    [sentence] = MapFolder(corpus / "run" / "probes" / "step_0000002").sentences()
    assert "".join(sentence.target_pieces).startswith("▁một▁hai.")


@pytest.mark.unchecked  # stand-ins for the trainer and its module
def test_training_continues_when_the_validation_files_are_gone(trained: Path, corpus_copy: Path) -> None:
    probes = AttentionProbes(load_run(trained, "cpu"), [IdPair(1, 1, [5, 6], [7, 8])])
    for side in ("en", "vi"):
        (corpus_copy / f"valid.{side}").unlink()
    trainer: Any = SimpleNamespace(is_global_zero=True, global_step=2, loggers=[])
    module: Any = SimpleNamespace(device=torch.device("cpu"))
    probes.on_validation_epoch_end(trainer, module)
    folder = MapFolder(trained / "probes" / "step_0000002")
    assert folder.lines == [1]
    assert len(folder.manifest["made_from"]["input_sha256"]) == 64
