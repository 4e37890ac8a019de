"""Attention = scorer + window + normaliser: o = sum_i a_i v_i, a = normaliser(score(q, k_1), ..., score(q, k_n))."""

from collections.abc import Callable

from jaxtyping import Bool, Float
from torch import Tensor, nn

from nmt.attention import kernels
from nmt.attention.dropout import Dropout
from nmt.attention.normalizers import Normalizer
from nmt.attention.scorers import Scorer

Queries = Float[Tensor, "batch heads queries query_dim"]
Keys = Float[Tensor, "batch heads keys _"]
Values = Float[Tensor, "batch heads keys value_dim"]
Context = Float[Tensor, "batch heads queries value_dim"]
Weights = Float[Tensor, "batch heads queries keys"]
Mask = Bool[Tensor, "..."]


class Attention(nn.Module):
    """One attention site. Keys are projected once by `project_keys`; both ways through take them projected.

    `context` is for training and search and may use a fused kernel; `attend` also returns the weights, before dropout.
    Calling the site is `context`, or `attend` when somebody watches.
    Scorer, window and normaliser are constructors: the site supplies the widths and owns what they build.
    """

    def __init__(
        self,
        scorer: Callable[..., Scorer],
        window: Callable[[], nn.Module],
        normalizer: Callable[[], Normalizer],
        *,
        query_dim: int,
        key_dim: int,
        num_heads: int = 1,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.scorer = scorer(query_dim=query_dim, key_dim=key_dim, num_heads=num_heads)
        self.window = window()
        self.normalizer = normalizer()
        self.dropout = Dropout(dropout)

    def project_keys(self, keys: Keys) -> Keys:
        """The scorer's part that depends on the keys alone; per position, so it can be cached."""
        projected: Tensor = self.scorer.project_keys(keys)
        return projected

    def forward(
        self, queries: Queries, keys: Keys, values: Values, mask: Mask, watch: Callable[[Tensor], None] | None = None
    ) -> Context:
        """The weighted mean of the values; `watch` is shown the weights (batch, heads, queries, keys)."""
        if watch is None:
            return self.context(queries, keys, values, mask)
        context, weights = self.attend(queries, keys, values, mask)
        watch(weights)
        return context

    def context(self, queries: Queries, keys: Keys, values: Values, mask: Mask) -> Context:
        """The weighted mean of the values, by whichever way is fastest on this device."""
        if not (self.scorer.inner_product and self.normalizer.fused and kernels.prefers_fused(queries)):
            return self.attend(queries, keys, values, mask)[0]
        dropout = self.dropout.p if self.training else 0.0
        projected = self.scorer.project_queries(queries)
        return kernels.inner_product_context(projected, keys, values, self.window(mask), dropout)

    def attend(self, queries: Queries, keys: Keys, values: Values, mask: Mask) -> tuple[Context, Weights]:
        """The weighted mean of the values, and the weights, by the formula."""
        scores = self.scorer.score(self.scorer.project_queries(queries), keys)
        weights = self.normalizer(scores, self.window(mask))
        return self.dropout(weights).to(values.dtype) @ values, weights
