"""Attention as kernel regression: estimate a curve from noisy points, with a kernel of fixed and of learned width.

  python -m scripts.studies.kernel_regression                          writes kernel_regression.png
  python -m scripts.studies.kernel_regression --out PATH --points 40 --seed 2

The estimate at x is a weighted mean of the points' y, with weights softmax(-((x - x_i) w)^2 / 2) (Nadaraya 1964,
Watson 1964): the queries are the x to estimate at, the keys the x_i, the values the y_i. The Attention is that of the
models, with scorer=gaussian (w = 1) and scorer=gaussian_learned. The width is learned by estimating each point from the
others; a mask blocks the point itself.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import matplotlib

matplotlib.use("agg")

import matplotlib.pyplot as plt
import torch
from torch import Tensor

from nmt.attention import Attention
from nmt.attention.normalizers import Softmax
from nmt.attention.scorers import Gaussian, GaussianLearned, Scorer
from nmt.attention.windows import Global
from nmt.errors import Mistake
from scripts.mistakes import report_mistakes

NOISE = 0.3
STEPS = 200


class Points(NamedTuple):
    """Points of a curve, sorted by x."""

    x: Tensor
    y: Tensor


class Fit(NamedTuple):
    """A curve estimated from points, and the weight of each point in each estimate."""

    name: str
    estimate: Tensor
    weights: Tensor


def curve(x: Tensor) -> Tensor:
    """The true curve, without noise."""
    return torch.sin(2 * x) + 0.4 * x


def sample(points: int, seed: int) -> Points:
    """Noisy points of the curve at random x between 0 and 5."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.rand(points, generator=generator).mul(5).sort().values
    return Points(x, curve(x) + NOISE * torch.randn(points, generator=generator))


def regression(scorer: type[Scorer]) -> Attention:
    """Attention with one head over scalars."""
    return Attention(scorer, Global, Softmax, query_dim=1, key_dim=1)


def attend(attention: Attention, x: Tensor, points: Points, mask: Tensor) -> tuple[Tensor, Tensor]:
    """The estimate at each x and its weights on the points; the mask is (x, points), True where allowed."""
    queries, keys, values = (column.view(1, 1, -1, 1) for column in (x, points.x, points.y))
    context, weights = attention.attend(queries, attention.project_keys(keys), values, mask[None, None])
    return context.flatten(), weights[0, 0]


def learn(attention: Attention, points: Points) -> None:
    """Minimizes the squared error of each point's estimate from all others."""
    others = ~torch.eye(len(points.x), dtype=torch.bool)
    optimizer = torch.optim.Adam(attention.parameters(), lr=0.1)
    for _ in range(STEPS):
        loss = (attend(attention, points.x, points, others)[0] - points.y).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def fits(points: Points, x: Tensor) -> list[Fit]:
    """The fits with fixed and with learned width."""
    plain, learned = regression(Gaussian), regression(GaussianLearned)
    learn(learned, points)
    width = learned.scorer.get_parameter("width").item()
    names = ("gaussian, w = 1", f"gaussian_learned, w = {abs(width):.2f}")
    everything = torch.ones(len(x), len(points.x), dtype=torch.bool)
    with torch.no_grad():
        attended = [attend(attention, x, points, everything) for attention in (plain, learned)]
    return [Fit(name, *pair) for name, pair in zip(names, attended, strict=True)]


def draw(points: Points, x: Tensor, fits: Sequence[Fit], path: Path) -> None:
    """Writes the picture: the data, the true curve and the fits above, the attention weights below."""
    figure, axes = plt.subplots(2, 2, figsize=(9, 7), layout="constrained")
    for (above, below), fit in zip(axes.T, fits, strict=True):
        above.scatter(points.x.numpy(), points.y.numpy(), s=14, color="#888888", label="points")
        above.plot(x.numpy(), curve(x).numpy(), color="#444444", linestyle="--", linewidth=1, label="true curve")
        above.plot(x.numpy(), fit.estimate.numpy(), color="#c0392b", linewidth=2, label="estimate")
        above.set(title=fit.name, xlabel="x")
        above.legend(frameon=False)
        image = below.pcolormesh(points.x.numpy(), x.numpy(), fit.weights.numpy(), cmap="magma_r", shading="nearest")
        below.set(xlabel="x_i of the points (keys)", ylabel="x of the estimate (query)")
        figure.colorbar(image, ax=below, label="weight")
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("kernel_regression.png"), help="default: %(default)s")
    parser.add_argument("--points", type=int, default=50, help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=1, help="default: %(default)s")
    options = parser.parse_args(arguments)
    if options.points < 2:
        raise Mistake(f"--points is {options.points}; it must be at least 2: each point is estimated from the others.")
    points, x = sample(options.points, options.seed), torch.linspace(0, 5, 100)
    fitted = fits(points, x)
    for fit in fitted:
        print(f"{fit.name}: mean squared error against the true curve {(fit.estimate - curve(x)).square().mean():.4f}")
    draw(points, x, fitted, options.out)
    print(options.out)


if __name__ == "__main__":
    report_mistakes(main)
