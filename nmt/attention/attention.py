"""Attention = scorer + window + normaliser: o = sum_i a_i v_i, a = normaliser(score(q, k_1), ..., score(q, k_n))."""

from collections.abc import Callable

from jaxtyping import Bool, Float
from torch import Tensor, nn

from nmt.attention.normalizers import Normalizer
from nmt.attention.scorers import Scorer
from nmt.attention.windows import Asking, View, Window
from nmt.kernels import products
from nmt.kernels.dropout import Dropout

Queries = Float[Tensor, "batch heads queries query_dim"]
Keys = Float[Tensor, "batch heads keys _"]
Values = Float[Tensor, "batch heads keys value_dim"]
Context = Float[Tensor, "batch heads queries value_dim"]
Weights = Float[Tensor, "batch heads queries keys"]
Mask = Bool[Tensor, "..."]

SiteWatch = Callable[[Tensor, View], None]
"""watch(weights, view) is shown the weights (batch, heads, queries, keys), and what the window left of the keys."""


class Attention(nn.Module):
    """One attention site. Keys are projected once by `project_keys`; both ways through take them projected.

    `context` is for training and search and may use a fused kernel; `attend` also returns the weights, before dropout.
    Calling the site is `context`, or `attend` when somebody watches. A local window wants to know who is `asking`.
    Scorer, window and normaliser are constructors: the site supplies the widths and owns what they build.
    """

    def __init__(
        self,
        scorer: Callable[..., Scorer],
        window: Callable[..., Window],
        normalizer: Callable[[], Normalizer],
        *,
        query_dim: int,
        key_dim: int,
        num_heads: int = 1,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.scorer = scorer(query_dim=query_dim, key_dim=key_dim, num_heads=num_heads)
        self.window = window(state_dim=query_dim * num_heads, num_heads=num_heads)
        self.normalizer = normalizer()
        self.dropout = Dropout(dropout)

    @property
    def max_keys(self) -> int | None:
        """The most keys that can be attended to; None where there is no limit."""
        return self.scorer.max_keys

    def project_keys(self, keys: Keys) -> Keys:
        """The scorer's part that depends on the keys alone; per position, so it can be cached."""
        projected: Tensor = self.scorer.project_keys(keys)
        return projected

    def forward(
        self,
        queries: Queries,
        keys: Keys,
        values: Values,
        mask: Mask,
        asking: Asking | None = None,
        watch: SiteWatch | None = None,
    ) -> Context:
        """The weighted mean of the values; `watch` is shown the weights and the window's view."""
        if watch is None:
            return self.context(queries, keys, values, mask, asking)
        view = self.window(mask, asking)
        context, weights = self._attend_within(view, queries, keys, values)
        watch(weights, view)
        return context

    def context(
        self, queries: Queries, keys: Keys, values: Values, mask: Mask, asking: Asking | None = None
    ) -> Context:
        """The weighted mean of the values, by whichever way is fastest on this device."""
        can_be_fused = self.scorer.inner_product and self.normalizer.fused and self.window.masks_only
        dropout = self.dropout.p if self.training else 0.0
        if not (can_be_fused and products.prefers_fused(queries, dropout)):
            return self.attend(queries, keys, values, mask, asking)[0]
        projected = self.scorer.project_queries(queries)
        seen = self.window(mask, asking).mask
        return products.inner_product_context(projected, self.scorer.key_vectors(keys), values, seen, dropout)

    def attend(
        self, queries: Queries, keys: Keys, values: Values, mask: Mask, asking: Asking | None = None
    ) -> tuple[Context, Weights]:
        """The weighted mean of the values, and the weights, by the formula."""
        return self._attend_within(self.window(mask, asking), queries, keys, values)

    def _attend_within(self, view: View, queries: Queries, keys: Keys, values: Values) -> tuple[Context, Weights]:
        scores = self.scorer.score(self.scorer.project_queries(queries), keys)
        if view.log_prior is not None and view.renormalised:
            scores = scores + view.log_prior
        weights = self.normalizer(scores, view.mask)
        if view.log_prior is not None and not view.renormalised:
            weights = weights * view.log_prior.exp()
        return self.dropout(weights).to(values.dtype) @ values, weights
