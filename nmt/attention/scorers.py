"""Scoring functions: score(query, key) for every query and key of every head (definitions: Luong 2015, Bahdanau 2015).

A scorer works in two parts, so that what depends on one position only is computed once and can be cached:
`project_queries` and `project_keys` act per position, `score` combines the projected ones. Its parameters are per head.
"""

import math
from abc import ABC, abstractmethod

import torch
from jaxtyping import Float
from torch import Tensor, nn

from nmt.attention.kernels import additive_score
from nmt.attention.sizes import require_positive

Queries = Float[Tensor, "batch heads queries query_dim"]
Keys = Float[Tensor, "batch heads keys key_dim"]
ProjectedQueries = Float[Tensor, "batch heads queries projected_dim"]
ProjectedKeys = Float[Tensor, "batch heads keys projected_dim"]
Scores = Float[Tensor, "batch heads queries keys"]


class Scorer(nn.Module, ABC):
    """`inner_product` says that score is projected query . projected key, which a fused kernel can compute."""

    inner_product = False

    @abstractmethod
    def project_queries(self, queries: Queries) -> Float[Tensor, "batch heads queries _"]: ...

    @abstractmethod
    def project_keys(self, keys: Keys) -> Float[Tensor, "batch heads keys _"]: ...

    @abstractmethod
    def score(self, queries: ProjectedQueries, keys: ProjectedKeys) -> Scores: ...


class Dot(Scorer):
    """q . k (Luong et al. 2015, section 3.1)."""

    inner_product = True

    def __init__(self, query_dim: int, key_dim: int, num_heads: int) -> None:
        super().__init__()
        _require_equal_widths(query_dim, key_dim)

    def project_queries(self, queries: Queries) -> Float[Tensor, "batch heads queries _"]:
        return queries

    def project_keys(self, keys: Keys) -> Float[Tensor, "batch heads keys _"]:
        return keys

    def score(self, queries: ProjectedQueries, keys: ProjectedKeys) -> Scores:
        return queries @ keys.transpose(-2, -1)


class ScaledDot(Dot):
    """q . k / sqrt(d), d the width of a head (Vaswani et al. 2017, equation 1)."""

    def __init__(self, query_dim: int, key_dim: int, num_heads: int) -> None:
        super().__init__(query_dim, key_dim, num_heads)
        self.scale = 1 / math.sqrt(query_dim)

    def project_queries(self, queries: Queries) -> Float[Tensor, "batch heads queries _"]:
        return queries * self.scale


class General(Scorer):
    """q . W k (Luong et al. 2015, section 3.1). W k is computed once per key.

    W starts uniform between -0.1 and 0.1 (section 4.1): scores that start as large as an unscaled inner product of wide
    heads saturate the softmax.
    """

    inner_product = True

    def __init__(self, query_dim: int, key_dim: int, num_heads: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(num_heads, key_dim, query_dim).uniform_(-0.1, 0.1))

    def project_queries(self, queries: Queries) -> Float[Tensor, "batch heads queries _"]:
        return queries

    def project_keys(self, keys: Keys) -> Float[Tensor, "batch heads keys _"]:
        return keys @ self.weight

    def score(self, queries: ProjectedQueries, keys: ProjectedKeys) -> Scores:
        return queries @ keys.transpose(-2, -1)


class Additive(Scorer):
    """v . tanh(W q + U k), without bias (Bahdanau et al. 2015, appendix A.1.2)."""

    def __init__(self, query_dim: int, key_dim: int, num_heads: int, hidden_dim: int | None = None) -> None:
        super().__init__()
        hidden_dim = query_dim if hidden_dim is None else hidden_dim
        require_positive({"scorer.hidden_dim": hidden_dim})
        self.query_weight = nn.Parameter(_per_head_matrix(num_heads, query_dim, hidden_dim))
        self.key_weight = nn.Parameter(_per_head_matrix(num_heads, key_dim, hidden_dim))
        self.vector = nn.Parameter(_per_head_matrix(num_heads, hidden_dim, 1).squeeze(-1))

    def project_queries(self, queries: Queries) -> Float[Tensor, "batch heads queries _"]:
        return queries @ self.query_weight

    def project_keys(self, keys: Keys) -> Float[Tensor, "batch heads keys _"]:
        return keys @ self.key_weight

    def score(self, queries: ProjectedQueries, keys: ProjectedKeys) -> Scores:
        return additive_score(queries, keys, self.vector)


class Concat(Scorer):
    """v . tanh(W [q; k]), all of W learned (Luong et al. 2015, section 3.1 and footnote 15)."""

    def __init__(self, query_dim: int, key_dim: int, num_heads: int, hidden_dim: int | None = None) -> None:
        super().__init__()
        hidden_dim = query_dim if hidden_dim is None else hidden_dim
        require_positive({"scorer.hidden_dim": hidden_dim})
        self.query_dim = query_dim
        self.weight = nn.Parameter(_per_head_matrix(num_heads, query_dim + key_dim, hidden_dim))
        self.vector = nn.Parameter(_per_head_matrix(num_heads, hidden_dim, 1).squeeze(-1))

    def project_queries(self, queries: Queries) -> Float[Tensor, "batch heads queries _"]:
        return queries @ self.weight[:, : self.query_dim]

    def project_keys(self, keys: Keys) -> Float[Tensor, "batch heads keys _"]:
        return keys @ self.weight[:, self.query_dim :]

    def score(self, queries: ProjectedQueries, keys: ProjectedKeys) -> Scores:
        return additive_score(queries, keys, self.vector)


def _per_head_matrix(num_heads: int, rows: int, columns: int) -> Float[Tensor, "{num_heads} {rows} {columns}"]:
    """Uniform with variance 2 / (rows + columns) in each head (Glorot & Bengio 2010, equation 16)."""
    bound = math.sqrt(6 / (rows + columns))
    return torch.empty(num_heads, rows, columns).uniform_(-bound, bound)


def _require_equal_widths(query_dim: int, key_dim: int) -> None:
    if query_dim != key_dim:
        raise ValueError(
            f"The inner product of a query and a key (scorer=dot, scorer=scaled_dot) needs equal widths, but queries "
            f"are {query_dim} wide and keys {key_dim}: make the widths equal or use scorer=general."
        )
