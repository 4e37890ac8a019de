"""Ablations of one attention head, to measure how much a model depends on it.

The window is not ablated: it still blocks keys, and the Gaussian of local_p still multiplies the weights, except with
`renormalize`, where it is part of the scores and is replaced together with them.
"""

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from nmt.attention.attention import Attention
from nmt.attention.normalizers import Normalizer
from nmt.attention.scorers import Scorer

Weights = Float[Tensor, "batch heads queries keys"]
Mask = Bool[Tensor, "..."]


class Ablated(Normalizer):
    """A normalizer that replaces the weights of one head and leaves the others unchanged."""

    def __init__(self, normalizer: Normalizer, head: int) -> None:
        super().__init__()
        self.normalizer, self.head = normalizer, head

    def forward(self, scores: Weights, mask: Mask) -> Weights:
        weights = self.normalizer(scores, mask)
        chosen = torch.arange(weights.shape[1], device=weights.device)[:, None, None] == self.head
        return torch.where(chosen, self.replace(weights, mask.expand(weights.shape)), weights)

    @abstractmethod
    def replace(self, weights: Weights, allowed: Bool[Tensor, "batch heads queries keys"]) -> Weights:
        """The weights to use instead; only those of the ablated head are taken."""


class Off(Ablated):
    """a_i = 0: the head contributes nothing (Michel et al. 2019, section 2.3)."""

    def replace(self, weights: Weights, allowed: Bool[Tensor, "batch heads queries keys"]) -> Weights:
        return torch.zeros_like(weights)


class Uniform(Ablated):
    """a_i = 1 / (number of allowed keys): the head returns the mean of the allowed values."""

    def replace(self, weights: Weights, allowed: Bool[Tensor, "batch heads queries keys"]) -> Weights:
        return allowed / allowed.sum(dim=-1, keepdim=True).clamp(min=1).to(weights.dtype)


class Shuffled(Ablated):
    """The head's own weights, permuted among the keys that the query may attend to.

    The permutation depends only on which keys are allowed, not on the rest of the batch.
    """

    def replace(self, weights: Weights, allowed: Bool[Tensor, "batch heads queries keys"]) -> Weights:
        keys = weights.shape[-1]
        places = torch.arange(keys, device=weights.device)
        # Blocked keys sort last in both orders. The random number of a position does not depend on the number of keys.
        ascending = torch.where(allowed, places, keys).argsort(dim=-1)
        shuffled = torch.where(allowed, _random_numbers(keys).to(weights.device), 2.0).argsort(dim=-1)
        return torch.zeros_like(weights).scatter(-1, ascending, weights.gather(-1, shuffled))


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
        return self.scorer.project_queries(torch.where(chosen, self.query, queries))

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
    attention: Attention, *, scorer: Scorer | None = None, normalizer: Normalizer | None = None
) -> Iterator[None]:
    """Replaces the scorer or the normalizer of `attention` inside the block."""
    own = attention.scorer, attention.normalizer
    attention.scorer, attention.normalizer = scorer or own[0], normalizer or own[1]
    try:
        yield
    finally:
        attention.scorer, attention.normalizer = own


def _random_numbers(number: int) -> Float[Tensor, " number"]:
    """Random numbers in [0, 1) that depend only on their position."""
    generator = torch.Generator().manual_seed(0)
    return torch.rand(number, generator=generator, dtype=torch.float64)
