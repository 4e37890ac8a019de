"""Attention with one head made useless, to see whether a model needs what it looks at.

The window stays the query's own: what it blocks is blocked, and the Gaussian of local_p multiplies whatever weights
there are; with `renormalise` it is a part of the scores, and replaced with them.
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
    """A normaliser that gives one head other weights than its own; the other heads keep theirs."""

    def __init__(self, normalizer: Normalizer, head: int) -> None:
        super().__init__()
        self.normalizer, self.head = normalizer, head

    def forward(self, scores: Weights, mask: Mask) -> Weights:
        weights = self.normalizer(scores, mask)
        chosen = torch.arange(weights.shape[1], device=weights.device)[:, None, None] == self.head
        return torch.where(chosen, self.replace(weights, mask.expand(weights.shape)), weights)

    @abstractmethod
    def replace(self, weights: Weights, allowed: Bool[Tensor, "batch heads queries keys"]) -> Weights:
        """Weights to have instead of the head's own."""


class Off(Ablated):
    """All weights 0: the head adds nothing (Michel et al. 2019, section 2.3)."""

    def replace(self, weights: Weights, allowed: Bool[Tensor, "batch heads queries keys"]) -> Weights:
        return torch.zeros_like(weights)


class Uniform(Ablated):
    """Equal weights on all keys that a query may see: the mean of the values."""

    def replace(self, weights: Weights, allowed: Bool[Tensor, "batch heads queries keys"]) -> Weights:
        return allowed / allowed.sum(dim=-1, keepdim=True).clamp(min=1).to(weights.dtype)


class Shuffled(Ablated):
    """The head's own weights, on other keys: those that a query may see are permuted.

    The permutation depends on how many keys the query may see and where they are, on nothing else in the batch.
    """

    def replace(self, weights: Weights, allowed: Bool[Tensor, "batch heads queries keys"]) -> Weights:
        keys = weights.shape[-1]
        places = torch.arange(keys, device=weights.device)
        # Blocked keys sort to the end in both orders; a place's random number is the same for any number of keys.
        ascending = torch.where(allowed, places, keys).argsort(dim=-1)
        shuffled = torch.where(allowed, _random_numbers(keys).to(weights.device), 2.0).argsort(dim=-1)
        return torch.zeros_like(weights).scatter(-1, ascending, weights.gather(-1, shuffled))


class FrozenQuery(Scorer):
    """A scorer to which every query of one head is the same `query`: its scores depend on the keys alone."""

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
    """`attention` with another scorer or normaliser inside, its own ones afterwards."""
    own = attention.scorer, attention.normalizer
    attention.scorer, attention.normalizer = scorer or own[0], normalizer or own[1]
    try:
        yield
    finally:
        attention.scorer, attention.normalizer = own


def _random_numbers(number: int) -> Float[Tensor, " number"]:
    """Numbers from 0 to 1, each of which depends on its place alone."""
    generator = torch.Generator().manual_seed(0)
    return torch.rand(number, generator=generator, dtype=torch.float64)
