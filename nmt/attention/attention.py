"""Attention = scorer + window + normalizer: o = sum_i a_i v_i, a = normalizer(score(q, k_1), ..., score(q, k_n))."""

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from nmt.attention.normalizers import Normalizer
from nmt.attention.scorers import Scorer
from nmt.attention.windows import QueryStates, VisibleKeys, Window
from nmt.kernels import fused_attention
from nmt.kernels.dropout import Dropout

Queries = Float[Tensor, "batch heads queries query_dim"]
Keys = Float[Tensor, "batch heads keys _"]
Values = Float[Tensor, "batch heads keys value_dim"]
Context = Float[Tensor, "batch heads queries value_dim"]
Weights = Float[Tensor, "batch heads queries keys"]
Mask = Bool[Tensor, "..."]

SiteWatch = Callable[[Tensor, VisibleKeys], None]
"""watch(weights, visible) receives the weights (batch, heads, queries, keys) and the window's VisibleKeys."""
EditWeights = Callable[[Tensor, VisibleKeys, Tensor], Tensor]
"""edit(weights, visible, positions) returns new weights for the queries.

`positions`, of shape (1 or batch, queries), are the positions of the queries, counted from 0.
"""


class Attention(nn.Module):
    """One attention site: o = sum_i a_i v_i with weights a = normalizer(score(q, k_1), ..., score(q, k_n)).

    Keys are projected once, by `project_keys`, and all other methods take projected keys. `context` may use a fused
    kernel; `attend` computes the formula and also returns the weights before dropout. Calling the module computes the
    formula if a `watch` is given, and calls `context` otherwise. Local windows need `query_states`, the states and
    positions of the queries. `scorer`, `window` and `normalizer` are constructors; the first two receive the site's
    widths and number of heads.
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
        self.edits: Sequence[EditWeights] = ()
        """Functions that replace the weights, applied in order; see nmt.attention.edits."""

    @property
    def max_keys(self) -> int | None:
        """The largest number of keys that the scorer supports; None if there is no limit."""
        return self.scorer.max_keys

    def project_keys(self, keys: Keys) -> Keys:
        """The scorer's projection of the keys. It acts on each position separately, so it can be cached."""
        projected: Tensor = self.scorer.project_keys(keys)
        return projected

    def forward(
        self,
        queries: Queries,
        keys: Keys,
        values: Values,
        mask: Mask,
        query_states: QueryStates | None = None,
        watch: SiteWatch | None = None,
    ) -> Context:
        """Returns the context; if `watch` is given, it receives the weights and the window's result."""
        if watch is None:
            return self.context(queries, keys, values, mask, query_states)
        context, weights, visible = self._attend(queries, keys, values, mask, query_states)
        watch(weights, visible)
        return context

    def context(
        self, queries: Queries, keys: Keys, values: Values, mask: Mask, query_states: QueryStates | None = None
    ) -> Context:
        """The context, computed by the fused kernel if that is possible and preferred, and otherwise by the formula."""
        can_be_fused = self.scorer.inner_product and self.normalizer.fused and self.window.masks_only and not self.edits
        dropout = self.dropout.p if self.training else 0.0
        if not (can_be_fused and fused_attention.prefers_fused(queries, keys, dropout)):
            return self.attend(queries, keys, values, mask, query_states)[0]
        projected = self.scorer.project_queries(queries)
        seen = self.window(mask, query_states).mask
        return fused_attention.inner_product_context(projected, self.scorer.key_vectors(keys), values, seen, dropout)

    def attend(
        self, queries: Queries, keys: Keys, values: Values, mask: Mask, query_states: QueryStates | None = None
    ) -> tuple[Context, Weights]:
        """The context and the weights, computed by the formula."""
        return self._attend(queries, keys, values, mask, query_states)[:2]

    def _attend(
        self, queries: Queries, keys: Keys, values: Values, mask: Mask, query_states: QueryStates | None
    ) -> tuple[Context, Weights, VisibleKeys]:
        visible = self.window(mask, query_states)
        scores = self.scorer.score(self.scorer.project_queries(queries), keys)
        if visible.log_prior is not None and visible.renormalized:
            scores = scores + visible.log_prior
        weights = self.normalizer(scores, visible.mask)
        if visible.log_prior is not None and not visible.renormalized:
            weights = weights * visible.log_prior.exp()
        if self.edits:
            positions = _last_positions(weights) if query_states is None else query_states.positions
            for edit in self.edits:
                weights = edit(weights, visible, positions)
        return self.dropout(weights).to(values.dtype) @ values, weights, visible


def _last_positions(weights: Weights) -> Int[Tensor, "1 queries"]:
    """The positions of the queries in self-attention.

    They are the positions of the last keys, because search caches all earlier keys and passes only the newest query.
    At the sites that attend to earlier sentences, whose keys are not those of the queries' own sentence, the numbers
    have no meaning: edits there must not be limited to `steps`.
    """
    queries, keys = weights.shape[-2:]
    return torch.arange(keys - queries, keys, device=weights.device).unsqueeze(0)
