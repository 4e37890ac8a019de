"""Attention between features: an attentional factorization machine (Xiao et al. 2017) finds which interactions matter.

  python -m scripts.studies.factorization_machine                 writes factorization_machine.png
  python -m scripts.studies.factorization_machine --out PATH --seed 2

The data follow a known rule: an example has one value in each of FIELDS fields, each value has a latent vector u, and
y = sum over pairs of fields of alpha_fg u_f . u_g, plus noise. Only some pairs have a weight alpha. A factorization
machine (Rendle 2010) learns a vector for each value and gives all pairs the same weight. The attentional one weights
each pair by an Attention whose keys and values are the pairs' products v_i * v_j. Its weights find the pairs that
interact, but not their alpha, because the length of the vectors can express alpha too.
"""

import argparse
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import matplotlib

matplotlib.use("agg")

import matplotlib.pyplot as plt
import torch
from torch import Tensor, nn

from nmt.attention import Attention
from nmt.attention.normalizers import Softmax
from nmt.attention.scorers import Scorer
from nmt.attention.windows import Global
from nmt.errors import Mistake
from scripts.mistakes import report_mistakes

FIELDS, VALUES, LATENT = 6, 8, 4
PAIRS = list(combinations(range(FIELDS), 2))
FIRST, SECOND = (torch.tensor(side) for side in zip(*PAIRS, strict=True))
# Of the 15 pairs, these interact.
ALPHA = {(0, 1): 3.0, (2, 3): 2.0, (1, 4): 1.5, (0, 5): 1.0}
NOISE = 0.1


class Examples(NamedTuple):
    """Feature numbers (examples, fields), one in each field, and their y."""

    features: Tensor
    y: Tensor


def rule() -> Tensor:
    """alpha of each pair of fields."""
    return torch.tensor([ALPHA.get(pair, 0.0) for pair in PAIRS])


def sample(number: int, seed: int) -> list[Examples]:
    """Training and test examples of one draw of the latent vectors, `number` of each."""
    generator = torch.Generator().manual_seed(seed)
    vectors = torch.randn(FIELDS * VALUES, LATENT, generator=generator)
    drawn = []
    for _ in range(2):
        values = torch.randint(VALUES, (number, FIELDS), generator=generator)
        features = values + VALUES * torch.arange(FIELDS)
        u = vectors[features]
        clean = ((u[:, FIRST] * u[:, SECOND]).sum(dim=-1) * rule()).sum(dim=-1)
        drawn.append(Examples(features, clean + NOISE * torch.randn(number, generator=generator)))
    return drawn


class FactorizationMachine(nn.Module):
    """y = w_0 + sum_i w_i + sum_{i<j} v_i . v_j over the features of an example (Rendle 2010, equation 1).

    The second sum is computed as 1/2 sum_f [(sum_i v_if)^2 - sum_i v_if^2] (Rendle 2010, lemma 3.1).
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.constant = nn.Parameter(torch.zeros(()))
        self.linear = nn.Embedding(FIELDS * VALUES, 1)
        self.vectors = nn.Embedding(FIELDS * VALUES, dim)
        nn.init.zeros_(self.linear.weight)
        nn.init.normal_(self.vectors.weight, std=0.3)

    def forward(self, features: Tensor) -> Tensor:
        """y of each example; features are (examples, fields)."""
        v = self.vectors(features)
        pairs = (v.sum(dim=1).square() - v.square().sum(dim=1)).sum(dim=-1) / 2
        return self.first_order(features) + pairs

    def first_order(self, features: Tensor) -> Tensor:
        """w_0 + sum_i w_i."""
        return self.constant + self.linear(features).sum(dim=(1, 2))


class PairScorer(Scorer):
    """h . ReLU(W k + b), whatever the query (Xiao et al. 2017, section 3.2)."""

    def __init__(self, query_dim: int, key_dim: int, num_heads: int) -> None:
        super().__init__()
        self.hidden = nn.Linear(key_dim, 4 * key_dim)
        self.vector = nn.Linear(4 * key_dim, 1, bias=False)

    def project_queries(self, queries: Tensor) -> Tensor:
        return queries

    def project_keys(self, keys: Tensor) -> Tensor:
        scores: Tensor = self.vector(torch.relu(self.hidden(keys)))
        return scores

    def score(self, queries: Tensor, keys: Tensor) -> Tensor:
        return keys.transpose(-2, -1).expand(*queries.shape[:-1], -1)


class AttentionalFactorizationMachine(FactorizationMachine):
    """y = w_0 + sum_i w_i + p . sum_{i<j} a_ij (v_i * v_j), a = softmax of PairScorer (Xiao et al. 2017, section 3).

    With a = 1 and p = 1 it is the factorization machine.
    """

    def __init__(self, dim: int) -> None:
        super().__init__(dim)
        self.attention = Attention(PairScorer, Global, Softmax, query_dim=dim, key_dim=dim)
        # The weights sum to 1, so p starts at the number of pairs: the factorization machine with equal weights.
        self.output = nn.Parameter(torch.full((dim,), float(len(PAIRS))))

    def forward(self, features: Tensor) -> Tensor:
        return self.attend(features)[0]

    def attend(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """y of each example, and the weights of its pairs (examples, pairs)."""
        v = self.vectors(features)
        products = (v[:, FIRST] * v[:, SECOND]).unsqueeze(1)
        everything = torch.ones(1, 1, 1, len(PAIRS), dtype=torch.bool)
        no_query = products[:, :, :1]
        context, weights = self.attention.attend(no_query, self.attention.project_keys(products), products, everything)
        return self.first_order(features) + context[:, 0, 0] @ self.output, weights[:, 0, 0]


def learn(machine: FactorizationMachine, examples: Examples, steps: int) -> None:
    """Minimizes the squared error with Adam, 512 examples a step."""
    optimizer = torch.optim.Adam(machine.parameters(), lr=0.01)
    generator = torch.Generator().manual_seed(0)
    for _ in range(steps):
        chosen = torch.randint(len(examples.y), (512,), generator=generator)
        loss = (machine(examples.features[chosen]) - examples.y[chosen]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@torch.no_grad()
def error(machine: FactorizationMachine, examples: Examples) -> float:
    """The root of the mean squared error."""
    return (machine(examples.features) - examples.y).square().mean().sqrt().item()


@torch.no_grad()
def mean_weights(machine: AttentionalFactorizationMachine, examples: Examples) -> Tensor:
    """How much of an example's attention each pair of fields gets on average."""
    return machine.attend(examples.features)[1].mean(dim=0)


def draw(weights: Tensor, path: Path) -> None:
    """Writes the picture: the rule's share of each pair of fields, and the learned weight beside it."""
    figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
    shares = rule() / rule().sum()
    for axis, numbers, title in ((axes[0], shares, "rule: alpha / sum"), (axes[1], weights, "mean attention weight")):
        square = torch.full((FIELDS, FIELDS), torch.nan)
        square[FIRST, SECOND] = numbers
        image = axis.imshow(square.numpy(), cmap="magma_r", vmin=0)
        axis.set(title=title, xlabel="field", ylabel="field")
        figure.colorbar(image, ax=axis)
        for (f, g), number in zip(PAIRS, numbers.tolist(), strict=True):
            dark = number > numbers.max() / 2
            axis.text(g, f, f"{number:.2f}", ha="center", va="center", color="white" if dark else "black", size=8)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("factorization_machine.png"), help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=1, help="default: %(default)s")
    parser.add_argument(
        "--examples", type=int, default=20_000, help="number of training examples, and of test examples"
    )
    parser.add_argument("--steps", type=int, default=4_000, help="default: %(default)s")
    parser.add_argument("--dim", type=int, default=8, help="width of the learned vectors; default: %(default)s")
    options = parser.parse_args(arguments)
    for name in ("examples", "steps", "dim"):
        if getattr(options, name) < 1:
            raise Mistake(f"--{name} is {getattr(options, name)}; it must be at least 1.")
    training, test = sample(options.examples, options.seed)
    torch.manual_seed(options.seed)
    machines = (FactorizationMachine(options.dim), AttentionalFactorizationMachine(options.dim))
    print(f"{'predicting the mean':36} test error {test.y.std().item():.3f}")
    for machine in machines:
        learn(machine, training, options.steps)
        print(f"{type(machine).__name__:36} test error {error(machine, test):.3f}")
    print(f"{'the noise':36} test error {NOISE:.3f}")
    weights = mean_weights(machines[1], test)
    used = rule() > 0
    ranks = 1 + weights.argsort(descending=True).argsort()
    print(f"{weights[used].sum():.0%} of the attention is on the {len(ALPHA)} of {len(PAIRS)} pairs that the rule uses")
    print(f"their ranks by weight: {', '.join(map(str, sorted(ranks[used].tolist())))}")
    draw(weights, options.out)
    print(options.out)


if __name__ == "__main__":
    report_mistakes(main)
