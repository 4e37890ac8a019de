"""What nmt.export_attention refuses before it searches."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nmt.run.export_attention
from nmt.data.corpus import Direction
from nmt.evaluation.maps import AttentionMap
from nmt.run.attention_maps import Forced
from nmt.run.build import Trained
from nmt.run.compose import Job
from nmt.run.export_attention import export_attention
from nmt.run.rundir import RunDirectory


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Job:
    """Of a model with 3 layers that has no tokenizers and cannot search."""
    absent: Any = None
    run = Trained(RunDirectory(tmp_path), {}, Direction("en", "vi"), absent, absent, absent)
    cross = AttentionMap("cross", np.ones((3, 2, 2, 2)), ["<s>", "a"], ["a", "</s>"], ["a", "</s>"])
    monkeypatch.setattr(nmt.run.export_attention, "load_run", lambda *_: run)
    monkeypatch.setattr(
        nmt.run.export_attention, "forced_maps", lambda *_, **__: iter([Forced(0, ["a"], ["a"], [cross])])
    )
    config = {"run_dir": tmp_path, "device": "cpu", "input": tmp_path / "absent", "batch_tokens": 101, "layer": None}
    return Job(config, (), "", None)


@pytest.mark.parametrize("layer", [3, 9, -1])
def test_a_layer_that_the_model_does_not_have(job: Job, layer: int) -> None:
    job.config["layer"] = layer
    with pytest.raises(ValueError, match=f"layer is {layer}; this model's layers are 0 to 2, null is the mean"):
        export_attention(job)


@pytest.mark.parametrize("layer", ["abc", 1.5, True, [1]])
def test_a_layer_that_is_no_whole_number(job: Job, layer: object) -> None:
    job.config["layer"] = layer
    with pytest.raises(ValueError, match=r"layer is '.*'; it must be a whole number from 0, or null for the mean"):
        export_attention(job)


@pytest.mark.parametrize("layer", [None, 0, 2])
def test_other_layers_pass_on_to_the_input(job: Job, layer: int | None) -> None:
    job.config["layer"] = layer
    with pytest.raises(FileNotFoundError, match=r"input is .*absent, and there is no such file"):
        export_attention(job)
