"""Means of checkpoints, and the moving average during training."""

from pathlib import Path
from typing import Any

import pytest
import torch

from nmt.errors import Mistake
from nmt.training.averaging import mean_weights, moving_average


@pytest.mark.parametrize(("number", "kept"), [(1, 2 / 11), (21, 22 / 31), (10**6, 0.999)])
def test_a_moving_average_keeps_less_at_first(number: int, kept: float) -> None:
    averages = [torch.tensor([3, -5], dtype=torch.float64), torch.tensor(7, dtype=torch.float64)]
    weights = [torch.tensor([11, 2], dtype=torch.float64), torch.tensor(-1, dtype=torch.float64)]
    expected = [kept * average + (1 - kept) * weight for average, weight in zip(averages, weights, strict=True)]
    moving_average(0.999)(averages, weights, torch.tensor(number))
    torch.testing.assert_close(averages, expected)


def test_first_weights_are_soon_forgotten() -> None:
    """A plain average of decay 0.999 would keep 0.999^99 = 91 % of them."""
    line, first = torch.nn.Linear(1, 1, bias=False), 5.0
    torch.nn.init.constant_(line.weight, first)
    averaged = torch.optim.swa_utils.AveragedModel(line, multi_avg_fn=moving_average(0.999))
    averaged.update_parameters(line)
    assert averaged.module.weight.item() == first
    torch.nn.init.zeros_(line.weight)
    for _ in range(99):
        averaged.update_parameters(line)
    assert 0 < averaged.module.weight.item() < 1e-8 * first


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
    with pytest.raises(Mistake, match=r"b and .*a have different tensors: average only checkpoints of the same run"):
        mean_weights(files)
    with pytest.raises(Mistake, match="no checkpoints to average"):
        mean_weights([])
