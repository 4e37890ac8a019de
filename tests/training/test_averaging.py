"""Means of checkpoints, and the moving average during training."""

from pathlib import Path
from typing import Any

import pytest
import torch

from nmt.training.averaging import mean_weights


def write(path: Path, **tensors: Any) -> Path:
    torch.save({"state_dict": tensors}, path)
    return path


def test_floating_tensors_are_means_and_others_those_of_the_first(tmp_path: Path) -> None:
    torch.manual_seed(1)
    values = [torch.randn(3, 5) for _ in range(3)]
    files = [write(tmp_path / f"{n}", weight=value, steps=torch.tensor(n)) for n, value in enumerate(values)]
    found = mean_weights(files)
    torch.testing.assert_close(found["weight"], torch.stack(values).double().mean(dim=0).float(), rtol=0, atol=0)
    assert found["steps"] == 0


def test_the_mean_of_low_precision_is_rounded_once(tmp_path: Path) -> None:
    values = [torch.tensor([256.0, 1.0]).bfloat16(), torch.tensor([258.0, 1.0]).bfloat16()] * 2
    found = mean_weights([write(tmp_path / f"{n}", weight=value) for n, value in enumerate(values)])
    assert found["weight"].equal(torch.tensor([257.0, 1.0]).bfloat16())


def test_checkpoints_of_other_weights_are_refused(tmp_path: Path) -> None:
    files = [write(tmp_path / "a", weight=torch.zeros(3)), write(tmp_path / "b", weight=torch.zeros(5))]
    with pytest.raises(ValueError, match=r"b and .*a hold different weights: average checkpoints of one training"):
        mean_weights(files)
    with pytest.raises(ValueError, match="no checkpoints to average"):
        mean_weights([])
