"""scripts/studies/kernel_regression.py: the estimate is Nadaraya's and Watson's, and learning the width helps."""

import pytest
import torch

from scripts.studies import kernel_regression as script


@pytest.fixture
def points():
    return script.sample(31, seed=3)


def test_the_plain_estimate_is_a_gaussian_kernel_s(points):
    """f(x) = sum_i K(x - x_i) y_i / sum_j K(x - x_j), K(u) = exp(-u^2 / 2)."""
    x, points = torch.linspace(0, 5, 7).double(), script.Points(points.x.double(), points.y.double())
    allowed = torch.ones(len(x), len(points.x), dtype=torch.bool)
    estimate, weights = script.attend(script.regression(script.Gaussian), x, points, allowed)
    kernel = torch.exp(-((x[:, None] - points.x) ** 2) / 2)
    torch.testing.assert_close(estimate, kernel @ points.y / kernel.sum(dim=1))
    torch.testing.assert_close(weights, kernel / kernel.sum(dim=1, keepdim=True))


def test_the_learned_width_comes_nearer_to_the_curve(points):
    x = torch.linspace(0, 5, 53)
    errors = [(fit.estimate - script.curve(x)).square().mean() for fit in script.fits(points, x)]
    assert errors[1] < errors[0] / 2


def test_draws_one_picture(tmp_path, capsys):
    script.main(["--out", str(tmp_path / "curve.png"), "--points", "13"])
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")
    assert "gaussian_learned, w = " in capsys.readouterr().out
