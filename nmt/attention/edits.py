"""Edits to a trained Attention: replacing its weights, freezing a query, or swapping one of its parts.

`with_parts` replaces parts of an Attention inside a `with` block. Its `edits` change the weights after the normalizer
and the window's prior, but before dropout. The edited weights multiply the values, and a `watch` receives them as well.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from nmt.attention.attention import Attention
from nmt.attention.normalizers import Normalizer
from nmt.attention.scorers import Scorer
from nmt.attention.windows import VisibleKeys, Window

Weights = Float[Tensor, "batch heads queries keys"]
Mask = Bool[Tensor, "..."]


class Change(ABC):
    """A rule that gives every query new weights. Blocked keys keep the weight 0."""

    @abstractmethod
    def __call__(self, weights: Weights, visible: VisibleKeys) -> Weights:
        """The new weights of all heads and queries; `visible` is the result of the window."""


@dataclass(frozen=True)
class Edit:
    """Applies a change to some heads and queries of an Attention and leaves the weights of all others untouched."""

    change: Change
    head: int | None = None
    """None for every head."""
    steps: Sequence[int] | None = None
    """Positions of the queries, from 0; None for every query."""

    def __call__(self, weights: Weights, visible: VisibleKeys, positions: Int[Tensor, "#batch queries"]) -> Weights:
        """The edited weights; `positions` are the positions of the queries."""
        heads = torch.arange(weights.shape[1], device=weights.device)
        of_head = torch.ones_like(heads, dtype=torch.bool) if self.head is None else heads == self.head
        edited = of_head[:, None, None]
        if self.steps is not None:
            steps = torch.tensor(list(self.steps), dtype=positions.dtype, device=positions.device)
            edited = edited & torch.isin(positions, steps)[:, None, :, None]
        return torch.where(edited, self.change(weights, visible), weights)


class Off(Change):
    """a_i = 0: the head contributes nothing (Michel et al. 2019, section 2.3)."""

    def __call__(self, weights: Weights, visible: VisibleKeys) -> Weights:
        return torch.zeros_like(weights)


class Uniform(Change):
    """a_i = 1 / (number of allowed keys): the head returns the mean of the allowed values.

    The Gaussian of a local-p window that is not renormalized still multiplies the weights.
    """

    def __call__(self, weights: Weights, visible: VisibleKeys) -> Weights:
        allowed = visible.mask.expand(weights.shape)
        return _with_prior(allowed / allowed.sum(dim=-1, keepdim=True).clamp(min=1).to(weights.dtype), visible)


class Shuffled(Change):
    """The head's own weights, permuted among the keys that the query may attend to.

    The permutation depends only on which keys are allowed, not on the rest of the batch. The Gaussian of a local-p
    window that is not renormalized stays in place: only the weights that it multiplies are permuted.
    """

    def __call__(self, weights: Weights, visible: VisibleKeys) -> Weights:
        allowed, keys = visible.mask.expand(weights.shape), weights.shape[-1]
        prior = _prior(visible)
        if prior is not None:
            weights = torch.where(allowed, weights / prior, 0)
        positions = torch.arange(keys, device=weights.device)
        # Blocked keys sort last in both orders. The random number drawn for a position does not depend on the number of
        # keys.
        ascending = torch.where(allowed, positions, keys).argsort(dim=-1)
        shuffled = torch.where(allowed, random_numbers(keys).to(weights.device), 2.0).argsort(dim=-1)
        return _with_prior(torch.zeros_like(weights).scatter(-1, ascending, weights.gather(-1, shuffled)), visible)


@dataclass(frozen=True)
class Given(Change):
    """Gives the first keys the weights in `weights`, and all other keys a weight of 0."""

    weights: Sequence[float]

    def __call__(self, weights: Weights, visible: VisibleKeys) -> Weights:
        given = torch.tensor(self.weights, dtype=weights.dtype, device=weights.device)[: weights.shape[-1]]
        padded = torch.nn.functional.pad(given, (0, weights.shape[-1] - len(given)))
        return (padded * visible.mask).expand(weights.shape)


@dataclass(frozen=True)
class Scaled(Change):
    """Multiplies the weights of some keys by `factor`, then rescales the weights of each query to their previous sum.

    A factor of 0 blocks the keys. If they had all the weight, the other allowed keys get equal shares of it.
    """

    keys: Sequence[int]
    factor: float

    def __call__(self, weights: Weights, visible: VisibleKeys) -> Weights:
        positions = torch.arange(weights.shape[-1], device=weights.device)
        chosen = torch.isin(positions, torch.tensor(list(self.keys), device=weights.device))
        scaled = torch.where(chosen, weights * self.factor, weights)
        allowed = (visible.mask & ~(chosen & (self.factor == 0))).expand(weights.shape)
        scaled = torch.where(scaled.sum(dim=-1, keepdim=True) > 0, scaled, allowed.to(weights.dtype))
        total, new = weights.sum(dim=-1, keepdim=True), scaled.sum(dim=-1, keepdim=True)
        return scaled * torch.where(new > 0, total / new, 0)


@dataclass(frozen=True)
class Zeroed(Change):
    """a_i = 0 for some keys of each sentence; the weights of all other keys stay the same.

    The context is the same as with v_i = 0 for these keys (Mohebbi et al. 2023, section 3).
    """

    keys: Bool[Tensor, "#batch keys"]

    def __call__(self, weights: Weights, visible: VisibleKeys) -> Weights:
        return weights.masked_fill(self.keys[:, None, None], 0)


@dataclass(frozen=True)
class OfHead(Change):
    """Uses the weights of another head of the same layer, even for keys outside this head's own window."""

    head: int

    def __call__(self, weights: Weights, visible: VisibleKeys) -> Weights:
        return weights[:, self.head : self.head + 1].expand(weights.shape)


class Tempered(Normalizer):
    """normalizer(scores / temperature): a temperature above 1 makes the weights more even, one below 1 sharper.

    The scores of a local-p window with `renormalize` contain the logarithm of its Gaussian, which is divided too.
    """

    def __init__(self, normalizer: Normalizer, temperature: float) -> None:
        super().__init__()
        self.normalizer, self.temperature = normalizer, temperature

    def extra_repr(self) -> str:
        return f"temperature = {self.temperature}"

    def forward(self, scores: Float[Tensor, "*batch queries keys"], mask: Mask) -> Float[Tensor, "*batch queries keys"]:
        return self.normalizer(scores / self.temperature, mask)


class FrozenQuery(Scorer):
    """A scorer that replaces every query of one head with `query`, so the head's scores depend on the keys alone."""

    def __init__(self, scorer: Scorer, head: int, query: Float[Tensor, " query_dim"]) -> None:
        super().__init__()
        self.scorer, self.head = scorer, head
        self.inner_product = scorer.inner_product
        self.query: Tensor
        self.register_buffer("query", query)

    @property
    def max_keys(self) -> int | None:
        return self.scorer.max_keys

    def project_queries(
        self, queries: Float[Tensor, "batch heads queries query_dim"]
    ) -> Float[Tensor, "batch heads queries _"]:
        chosen = torch.arange(queries.shape[1], device=queries.device)[:, None, None] == self.head
        return self.scorer.project_queries(torch.where(chosen, self.query.to(queries.dtype), queries))

    def project_keys(self, keys: Float[Tensor, "batch heads keys key_dim"]) -> Float[Tensor, "batch heads keys _"]:
        return self.scorer.project_keys(keys)

    def key_vectors(self, keys: Float[Tensor, "batch heads keys dim"]) -> Float[Tensor, "batch heads keys _"]:
        return self.scorer.key_vectors(keys)

    def score(
        self, queries: Float[Tensor, "batch heads queries dim"], keys: Float[Tensor, "batch heads keys _"]
    ) -> Weights:
        return self.scorer.score(queries, keys)


@contextmanager
def with_parts(
    attention: Attention,
    *,
    scorer: Scorer | None = None,
    window: Window | None = None,
    normalizer: Normalizer | None = None,
    edits: Sequence[Edit] = (),
) -> Iterator[None]:
    """Replaces parts of `attention` inside the block and adds `edits`, which are applied to its weights in order."""
    before = attention.scorer, attention.window, attention.normalizer, attention.edits
    attention.scorer, attention.window = scorer or attention.scorer, window or attention.window
    attention.normalizer, attention.edits = normalizer or attention.normalizer, (*attention.edits, *edits)
    try:
        yield
    finally:
        attention.scorer, attention.window, attention.normalizer, attention.edits = before


def _prior(visible: VisibleKeys) -> Tensor | None:
    """The Gaussian that multiplies the weights after the normalizer; None for a window without one."""
    return None if visible.log_prior is None or visible.renormalized else visible.log_prior.exp()


def _with_prior(weights: Weights, visible: VisibleKeys) -> Weights:
    prior = _prior(visible)
    return weights if prior is None else weights * prior


def random_numbers(number: int) -> Float[Tensor, " number"]:
    """Random numbers in [0, 1), each of which depends only on its position."""
    generator = torch.Generator().manual_seed(0)
    return torch.rand(number, generator=generator, dtype=torch.float64)
