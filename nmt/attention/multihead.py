"""Multi-head attention (Vaswani et al. 2017, section 3.2.2) around any Attention."""

from collections.abc import Callable
from typing import NamedTuple

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from nmt.attention.attention import Attention, SiteWatch
from nmt.attention.sizes import require_heads
from nmt.attention.windows import QueryStates


class KeysValues(NamedTuple):
    """The keys and values of a site, split into heads; the keys are already projected by the scorer."""

    keys: Float[Tensor, "batch heads keys key_dim"]
    values: Float[Tensor, "batch heads keys value_dim"]


class MultiHeadAttention(nn.Module):
    """Concat(head_1 .. head_h) W_O with head_i = Attention(Q W_i^Q, K W_i^K, V W_i^V).

    See Vaswani et al. 2017, section 3.2.2. Queries have width `query_dim`; keys, values and the result have width
    `key_dim`. Raises Mistake if `num_heads` is below 1 or does not divide both widths.
    """

    def __init__(
        self, attention: Callable[..., Attention], query_dim: int, key_dim: int, num_heads: int, dropout: float
    ) -> None:
        super().__init__()
        require_heads("model.num_heads", num_heads, {"query": query_dim, "key": key_dim})
        self.num_heads = num_heads
        self.query, self.key = nn.Linear(query_dim, query_dim), nn.Linear(key_dim, query_dim)
        self.value, self.output = nn.Linear(key_dim, key_dim), nn.Linear(key_dim, key_dim)
        head_dim = query_dim // num_heads
        self.attention = attention(query_dim=head_dim, key_dim=head_dim, num_heads=num_heads, dropout=dropout)

    def project(self, inputs: Float[Tensor, "batch keys key_dim"]) -> KeysValues:
        """The keys and values of `inputs`. Each position is projected separately, so new positions can be appended.

        They are contiguous for each head; otherwise matrix products would copy them at every decoder step.
        """
        keys = self.attention.project_keys(self._split(self.key(inputs)))
        return KeysValues(keys.contiguous(), self._split(self.value(inputs)).contiguous())

    def forward(
        self,
        inputs: Float[Tensor, "batch queries query_dim"],
        memory: KeysValues,
        mask: Bool[Tensor, "..."],
        positions: Int[Tensor, "#batch queries"] | None = None,
        watch: SiteWatch | None = None,
    ) -> Float[Tensor, "batch queries key_dim"]:
        """Attends from `inputs` to `memory`; `positions` are those of the inputs in their own sentence.

        `watch` receives the weights of all heads.
        """
        query_states = None if positions is None else QueryStates(inputs, positions)
        context = self.attention(self._split(self.query(inputs)), *memory, mask, query_states, watch)
        return self.output(context.transpose(1, 2).flatten(2))

    def _split(self, x: Float[Tensor, "batch n dim"]) -> Float[Tensor, "batch heads n head_dim"]:
        return x.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)


class SingleHeadAttention(nn.Module):
    """One head without projections, as in the papers on recurrent models: the values are the inputs themselves."""

    def __init__(self, attention: Callable[..., Attention], query_dim: int, key_dim: int) -> None:
        super().__init__()
        self.attention = attention(query_dim=query_dim, key_dim=key_dim)

    def project(self, inputs: Float[Tensor, "batch keys key_dim"]) -> KeysValues:
        """The keys and values of `inputs`."""
        values = inputs.unsqueeze(1)
        return KeysValues(self.attention.project_keys(values), values)

    def forward(
        self,
        inputs: Float[Tensor, "batch queries query_dim"],
        memory: KeysValues,
        mask: Bool[Tensor, "..."],
        positions: Int[Tensor, "#batch queries"] | None = None,
        watch: SiteWatch | None = None,
    ) -> Float[Tensor, "batch queries key_dim"]:
        """Attends from `inputs` to `memory`; `positions` are those of the inputs in their own sentence.

        `watch` receives the weights.
        """
        query_states = None if positions is None else QueryStates(inputs, positions)
        return self.attention(inputs.unsqueeze(1), *memory, mask, query_states, watch).squeeze(1)


def with_heads(
    attention: Callable[..., Attention], query_dim: int, key_dim: int, num_heads: int
) -> MultiHeadAttention | SingleHeadAttention:
    """A SingleHeadAttention for one head, otherwise a MultiHeadAttention."""
    if num_heads == 1:
        return SingleHeadAttention(attention, query_dim, key_dim)
    return MultiHeadAttention(attention, query_dim, key_dim, num_heads, dropout=0.0)
