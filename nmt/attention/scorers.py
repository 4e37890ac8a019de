"""Scoring functions: score(query, key) for every query and key of every head.

A scorer works in two steps. `project_queries` and `project_keys` act on each position separately, so their results can
be cached; `score` combines projected queries and keys. Each head has its own parameters.
"""

import math
from abc import ABC, abstractmethod

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from nmt.attention.sizes import require_positive
from nmt.errors import Mistake, TemplatedMessage
from nmt.kernels.additive_score import additive_score
from nmt.kernels.headwise_product import headwise_product

Queries = Float[Tensor, "batch heads queries query_dim"]
Keys = Float[Tensor, "batch heads keys key_dim"]
ProjectedQueries = Float[Tensor, "batch heads queries projected_dim"]
ProjectedKeys = Float[Tensor, "batch heads keys projected_dim"]
Scores = Float[Tensor, "batch heads queries keys"]


class Scorer(nn.Module, ABC):
    """Scores every query against every key.

    `inner_product` is True if the score is the inner product of the projected query and the key vector, which a fused
    kernel can compute.
    """

    inner_product = False

    @property
    def max_keys(self) -> int | None:
        """The largest number of keys that the scorer supports; None if there is no limit."""
        return None

    @abstractmethod
    def project_queries(self, queries: Queries) -> Float[Tensor, "batch heads queries _"]:
        """The part of `score` that depends on the query alone."""

    @abstractmethod
    def project_keys(self, keys: Keys) -> Float[Tensor, "batch heads keys _"]:
        """The part of `score` that depends on the key alone. The search caches it, so each key is projected once."""

    def key_vectors(self, keys: ProjectedKeys) -> Float[Tensor, "batch heads keys _"]:
        """The vectors whose inner products with the projected queries are the scores; by default the projected keys."""
        return keys

    @abstractmethod
    def score(self, queries: ProjectedQueries, keys: ProjectedKeys) -> Scores:
        """The score of every projected query with every projected key."""


class InnerProduct(Scorer):
    """projected query . projected key; subclasses define the projections."""

    inner_product = True

    def project_queries(self, queries: Queries) -> Float[Tensor, "batch heads queries _"]:
        return queries

    def project_keys(self, keys: Keys) -> Float[Tensor, "batch heads keys _"]:
        return keys

    def score(self, queries: ProjectedQueries, keys: ProjectedKeys) -> Scores:
        return queries @ self.key_vectors(keys).transpose(-2, -1)


class Dot(InnerProduct):
    """q . k (Luong et al. 2015, section 3.1)."""

    def __init__(self, query_dim: int, key_dim: int, num_heads: int) -> None:
        super().__init__()
        _require_equal_widths("The inner product (scorer=dot, scorer=scaled_dot)", query_dim, key_dim)


class ScaledDot(Dot):
    """q . k / sqrt(d), where d is the width of a head (Vaswani et al. 2017, equation 1)."""

    def __init__(self, query_dim: int, key_dim: int, num_heads: int) -> None:
        super().__init__(query_dim, key_dim, num_heads)
        self.scale = 1 / math.sqrt(query_dim)

    def project_queries(self, queries: Queries) -> Float[Tensor, "batch heads queries _"]:
        return queries * self.scale


class General(InnerProduct):
    """q . W k (Luong et al. 2015, section 3.1). W k is computed once per key.

    W is initialized from U(-0.1, 0.1) (section 4.1), because larger initial scores, such as unscaled inner products of
    wide heads, would saturate the softmax. `weight` has the transpose of W for each head.
    """

    def __init__(self, query_dim: int, key_dim: int, num_heads: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(num_heads, key_dim, query_dim).uniform_(-0.1, 0.1))

    def project_keys(self, keys: Keys) -> Float[Tensor, "batch heads keys _"]:
        return headwise_product(keys, self.weight)


class Location(InnerProduct):
    """(W q)_s for the key at position s, whatever the key itself is (Luong et al. 2015, equation 8). W has `max_length`
    rows; a longer sentence is rejected, whereas the paper ignores the words near its end (footnote 6). In multi-head
    attention, the key projections have no effect with this scorer.

    `score` raises Mistake if there are more keys than rows.
    """

    def __init__(self, query_dim: int, key_dim: int, num_heads: int, max_length: int) -> None:
        super().__init__()
        require_positive({"scorer.max_length": max_length})
        self.weight = nn.Parameter(_per_head_matrix(num_heads, max_length, query_dim))

    @property
    def max_keys(self) -> int:
        return self.weight.shape[1]

    def extra_repr(self) -> str:
        return f"max_length = {self.max_keys}"

    def project_keys(self, keys: Keys) -> Float[Tensor, "batch heads keys _"]:
        # Zeros that depend on the keys, so that the keys get a zero gradient instead of none.
        return F.pad(keys[..., :0], (0, self.weight.shape[-1]))

    def key_vectors(self, keys: ProjectedKeys) -> Float[Tensor, "batch heads keys _"]:
        length = keys.shape[2]
        if length > self.max_keys:
            raise Mistake(
                TemplatedMessage(
                    "scorer=location has weights for {most} positions, but the sentence has {length}; shorten the "
                    "sentence, or train with a larger scorer.max_length.",
                    most=self.max_keys,
                    length=length,
                )
            )
        return self.weight[:, :length] + keys


class Gaussian(InnerProduct):
    """-|q - k|^2 / 2; with the softmax, this is kernel regression with a Gaussian kernel (Nadaraya 1964; Watson 1964).
    The term -|q|^2 / 2 is left out, because it is the same for every key and cancels in the softmax. The rest,
    q . k - |k|^2 / 2, is the inner product [q, 1, 1, 0 ..] . [k, high, low, 0 ..] with high + low = -|k|^2 / 2.

    A single column for -|k|^2 / 2 would be too coarse in bfloat16. Zeros pad the width to a multiple of 8.
    """

    def __init__(self, query_dim: int, key_dim: int, num_heads: int) -> None:
        super().__init__()
        _require_equal_widths("A distance (scorer=gaussian, scorer=gaussian_learned)", query_dim, key_dim)
        self.zeros = -(query_dim + 2) % 8

    def project_queries(self, queries: Queries) -> Float[Tensor, "batch heads queries _"]:
        ones = torch.ones_like(queries[..., :1]).expand(*queries.shape[:-1], 2)
        return F.pad(torch.cat([queries, ones], dim=-1), (0, self.zeros))

    def project_keys(self, keys: Keys) -> Float[Tensor, "batch heads keys _"]:
        exact = keys if keys.dtype == torch.float64 else keys.float()
        column = -exact.square().sum(dim=-1, keepdim=True) / 2
        # Rounded to bfloat16 in every precision, because autocast may cast the columns to bfloat16 later.
        high = column.bfloat16().to(column.dtype)
        columns = torch.cat([high, column - high], dim=-1).to(keys.dtype)
        return F.pad(torch.cat([keys, columns], dim=-1), (0, self.zeros))

    def score(self, queries: ProjectedQueries, keys: ProjectedKeys) -> Scores:
        # Large positive and negative terms cancel in this sum. Autocast would round the sum to bfloat16, which a fused
        # kernel does not do.
        exact = torch.promote_types(queries.dtype, torch.float32)
        with torch.autocast(queries.device.type, enabled=False):
            return super().score(queries.to(exact), keys.to(exact))


class GaussianLearned(Gaussian):
    """-|(q - k) w|^2 / 2 with one learned w per head, the inverse width of the kernel; initially w^2 = 1 / sqrt(d).
    With the softmax, this is kernel regression (Nadaraya 1964; Watson 1964) with a learned width. It is computed as the
    Gaussian score of q w and k w.
    """

    def __init__(self, query_dim: int, key_dim: int, num_heads: int) -> None:
        super().__init__(query_dim, key_dim, num_heads)
        self.width = nn.Parameter(torch.full((num_heads, 1, 1), query_dim**-0.25))

    def project_queries(self, queries: Queries) -> Float[Tensor, "batch heads queries _"]:
        return super().project_queries(queries * self.width.to(queries.dtype))

    def project_keys(self, keys: Keys) -> Float[Tensor, "batch heads keys _"]:
        return super().project_keys(keys * self.width.to(keys.dtype))


class NoScore(InnerProduct):
    """A score of 0 for every key, so the context is the mean of the values, whatever the query is. This baseline shows
    what attention contributes. In multi-head attention, the query and key projections have no effect with this scorer.
    """

    def __init__(self, query_dim: int, key_dim: int, num_heads: int) -> None:
        super().__init__()

    def project_queries(self, queries: Queries) -> Float[Tensor, "batch heads queries _"]:
        return F.pad(queries[..., :0], (0, 8))  # fused kernels need a width above 0

    def project_keys(self, keys: Keys) -> Float[Tensor, "batch heads keys _"]:
        return F.pad(keys[..., :0], (0, 8))


class Additive(Scorer):
    """v . tanh(W q + U k), without biases, as in the paper's equation (Bahdanau et al. 2015, appendix A.1.2)."""

    def __init__(self, query_dim: int, key_dim: int, num_heads: int, hidden_dim: int | None = None) -> None:
        super().__init__()
        hidden_dim = query_dim if hidden_dim is None else hidden_dim
        require_positive({"scorer.hidden_dim": hidden_dim})
        self.query_weight = nn.Parameter(_per_head_matrix(num_heads, query_dim, hidden_dim))
        self.key_weight = nn.Parameter(_per_head_matrix(num_heads, key_dim, hidden_dim))
        self.vector = nn.Parameter(_per_head_matrix(num_heads, hidden_dim, 1).squeeze(-1))

    def project_queries(self, queries: Queries) -> Float[Tensor, "batch heads queries _"]:
        return headwise_product(queries, self.query_weight)

    def project_keys(self, keys: Keys) -> Float[Tensor, "batch heads keys _"]:
        return headwise_product(keys, self.key_weight)

    def score(self, queries: ProjectedQueries, keys: ProjectedKeys) -> Scores:
        return additive_score(queries, keys, self.vector)


class Concat(Scorer):
    """v . tanh(W [q; k]) (Luong et al. 2015, section 3.1). All of W is learned. In the paper, half of W is fixed to
    the identity; its authors suspect that this hurt their results (footnote 15).
    """

    def __init__(self, query_dim: int, key_dim: int, num_heads: int, hidden_dim: int | None = None) -> None:
        super().__init__()
        hidden_dim = query_dim if hidden_dim is None else hidden_dim
        require_positive({"scorer.hidden_dim": hidden_dim})
        self.query_dim = query_dim
        self.weight = nn.Parameter(_per_head_matrix(num_heads, query_dim + key_dim, hidden_dim))
        self.vector = nn.Parameter(_per_head_matrix(num_heads, hidden_dim, 1).squeeze(-1))

    def project_queries(self, queries: Queries) -> Float[Tensor, "batch heads queries _"]:
        return headwise_product(queries, self.weight[:, : self.query_dim])

    def project_keys(self, keys: Keys) -> Float[Tensor, "batch heads keys _"]:
        return headwise_product(keys, self.weight[:, self.query_dim :])

    def score(self, queries: ProjectedQueries, keys: ProjectedKeys) -> Scores:
        return additive_score(queries, keys, self.vector)


def _per_head_matrix(num_heads: int, rows: int, columns: int) -> Float[Tensor, "{num_heads} {rows} {columns}"]:
    """U(-b, b) with b = sqrt(6 / (rows + columns)) for each head (Glorot & Bengio 2010, equation 16)."""
    bound = math.sqrt(6 / (rows + columns))
    return torch.empty(num_heads, rows, columns).uniform_(-bound, bound)


def _require_equal_widths(what: str, query_dim: int, key_dim: int) -> None:
    if query_dim != key_dim:
        raise Mistake(
            f"{what} needs equal widths, but queries are {query_dim} wide and keys {key_dim}: make the widths equal or "
            "use scorer=general."
        )
