"""Scoring functions: score(query, key) for every query and key of every head (definitions: Luong 2015, Bahdanau 2015).

A scorer works in two parts, so that what depends on one position only is computed once and can be cached:
`project_queries` and `project_keys` act per position, `score` combines the projected ones. Its parameters are per head.
"""

import math
from abc import ABC, abstractmethod

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from nmt.attention.sizes import require_positive
from nmt.kernels.additive_score import additive_score
from nmt.kernels.products import headwise_product

Queries = Float[Tensor, "batch heads queries query_dim"]
Keys = Float[Tensor, "batch heads keys key_dim"]
ProjectedQueries = Float[Tensor, "batch heads queries projected_dim"]
ProjectedKeys = Float[Tensor, "batch heads keys projected_dim"]
Scores = Float[Tensor, "batch heads queries keys"]


class Scorer(nn.Module, ABC):
    """`inner_product` says that score is projected query . key vector, which a fused kernel can compute."""

    inner_product = False

    @property
    def max_keys(self) -> int | None:
        """The most keys that can be scored; None where there is no limit."""
        return None

    @abstractmethod
    def project_queries(self, queries: Queries) -> Float[Tensor, "batch heads queries _"]: ...

    @abstractmethod
    def project_keys(self, keys: Keys) -> Float[Tensor, "batch heads keys _"]: ...

    def key_vectors(self, keys: ProjectedKeys) -> Float[Tensor, "batch heads keys _"]:
        """What an inner product takes for the keys: their projections, unless a scorer says otherwise."""
        return keys

    @abstractmethod
    def score(self, queries: ProjectedQueries, keys: ProjectedKeys) -> Scores: ...


class InnerProduct(Scorer):
    """score = query . key; what is particular to one lies in how it projects."""

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
    """q . k / sqrt(d), d the width of a head (Vaswani et al. 2017, equation 1)."""

    def __init__(self, query_dim: int, key_dim: int, num_heads: int) -> None:
        super().__init__(query_dim, key_dim, num_heads)
        self.scale = 1 / math.sqrt(query_dim)

    def project_queries(self, queries: Queries) -> Float[Tensor, "batch heads queries _"]:
        return queries * self.scale


class General(InnerProduct):
    """q . W k (Luong et al. 2015, section 3.1). W k is computed once per key.

    W starts uniform between -0.1 and 0.1 (section 4.1): scores that start as large as an unscaled inner product of wide
    heads saturate the softmax.
    """

    def __init__(self, query_dim: int, key_dim: int, num_heads: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(num_heads, key_dim, query_dim).uniform_(-0.1, 0.1))

    def project_keys(self, keys: Keys) -> Float[Tensor, "batch heads keys _"]:
        return headwise_product(keys, self.weight)


class Location(InnerProduct):
    """Row s of W q, for the key at position s, whatever the key holds (Luong et al. 2015, equation 8). W has a row for
    each of max_length positions; a longer sentence is refused, where the paper ignores its end (footnote 6). Heads
    leave their projection of the keys idle.

    score raises ValueError when there are more keys than rows.
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
        # Zeros, for which what made the keys gets a gradient of zero, as it gets one in every scorer.
        return F.pad(keys[..., :0], (0, self.weight.shape[-1]))

    def key_vectors(self, keys: ProjectedKeys) -> Float[Tensor, "batch heads keys _"]:
        length = keys.shape[2]
        if length > self.max_keys:
            raise ValueError(
                f"scorer=location has weights for {self.max_keys} positions, and here are {length}: "
                "shorten the sentence, or train with a larger max_length of this scorer."
            )
        return self.weight[:, :length] + keys


class Gaussian(InnerProduct):
    """-|q - k|^2 / 2, without -|q|^2 / 2, which is the same for every key and changes no weight: with the softmax this
    is kernel regression with a Gaussian kernel (Nadaraya 1964; Watson 1964). The rest, q . k - |k|^2 / 2, is an inner
    product with two more columns, filled up to a multiple of 8.

    These are [q, 1, 1, 0 ..] and [k, high, low, 0 ..] with high + low = -|k|^2 / 2 in two columns, because one is too
    coarse in bfloat16.
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
        # Rounded so in every precision: autocast may round the whole to bfloat16 before it multiplies.
        high = column.bfloat16().to(column.dtype)
        columns = torch.cat([high, column - high], dim=-1).to(keys.dtype)
        return F.pad(torch.cat([keys, columns], dim=-1), (0, self.zeros))

    def score(self, queries: ProjectedQueries, keys: ProjectedKeys) -> Scores:
        # The sum of large numbers of both signs; autocast would round it to bfloat16, which a fused kernel does not.
        exact = torch.promote_types(queries.dtype, torch.float32)
        with torch.autocast(queries.device.type, enabled=False):
            return super().score(queries.to(exact), keys.to(exact))


class GaussianLearned(Gaussian):
    """-|(q - k) w|^2 / 2 with one learned w a head, the inverse of the kernel's width; w^2 = 1 / sqrt(d) at the start.
    With the softmax this is kernel regression (Nadaraya 1964; Watson 1964), whose width is learned here. Like the
    gaussian score it leaves out -|q w|^2 / 2, and its keys have two more columns, filled up to a multiple of 8.
    """

    def __init__(self, query_dim: int, key_dim: int, num_heads: int) -> None:
        super().__init__(query_dim, key_dim, num_heads)
        self.width = nn.Parameter(torch.full((num_heads, 1, 1), query_dim**-0.25))

    def project_queries(self, queries: Queries) -> Float[Tensor, "batch heads queries _"]:
        return super().project_queries(queries * self.width.to(queries.dtype))

    def project_keys(self, keys: Keys) -> Float[Tensor, "batch heads keys _"]:
        return super().project_keys(keys * self.width.to(keys.dtype))


class NoScore(InnerProduct):
    """0 for every key, so that no query makes a difference: the baseline that shows what attention buys. Heads leave
    their projections of queries and keys idle.
    """

    def __init__(self, query_dim: int, key_dim: int, num_heads: int) -> None:
        super().__init__()

    def project_queries(self, queries: Queries) -> Float[Tensor, "batch heads queries _"]:
        return F.pad(queries[..., :0], (0, 8))  # a fused kernel wants some width

    def project_keys(self, keys: Keys) -> Float[Tensor, "batch heads keys _"]:
        return F.pad(keys[..., :0], (0, 8))


class Additive(Scorer):
    """v . tanh(W q + U k) (Bahdanau et al. 2015, appendix A.1.2; the paper writes no biases, and here are none)."""

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
    """v . tanh(W [q; k]) (Luong et al. 2015, section 3.1), all of W learned: his had the identity as its half for k
    (footnote 15).
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
    """Uniform with variance 2 / (rows + columns) in each head (Glorot & Bengio 2010, equation 16)."""
    bound = math.sqrt(6 / (rows + columns))
    return torch.empty(num_heads, rows, columns).uniform_(-bound, bound)


def _require_equal_widths(what: str, query_dim: int, key_dim: int) -> None:
    if query_dim != key_dim:
        raise ValueError(
            f"{what} needs equal widths, but queries are {query_dim} wide and keys {key_dim}: make the widths equal or "
            "use scorer=general."
        )
