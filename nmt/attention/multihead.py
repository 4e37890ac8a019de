"""Multi-head attention (Vaswani et al. 2017, section 3.2.2) around any Attention."""

from collections.abc import Callable
from typing import NamedTuple

from jaxtyping import Bool, Float
from torch import Tensor, nn

from nmt.attention.attention import Attention
from nmt.attention.sizes import require_positive


class KeysValues(NamedTuple):
    """What a site keeps of the positions it attends to: keys as its scorer wants them, and values, split by heads."""

    keys: Float[Tensor, "batch heads keys key_dim"]
    values: Float[Tensor, "batch heads keys head_dim"]


class MultiHeadAttention(nn.Module):
    """Concat(head_1 .. head_h) W_O with head_i = Attention(Q W_i^Q, K W_i^K, V W_i^V)."""

    def __init__(self, attention: Callable[..., Attention], dim: int, num_heads: int, dropout: float) -> None:
        super().__init__()
        require_positive({"num_heads": num_heads})
        if dim % num_heads:
            raise ValueError(f"num_heads={num_heads} does not divide dim={dim}: choose a divisor, such as 4 of 256.")
        self.num_heads = num_heads
        self.query, self.key, self.value, self.output = (nn.Linear(dim, dim) for _ in range(4))
        head_dim = dim // num_heads
        self.attention = attention(query_dim=head_dim, key_dim=head_dim, num_heads=num_heads, dropout=dropout)

    def project(self, inputs: Float[Tensor, "batch keys dim"]) -> KeysValues:
        """The keys and values of `inputs`; per position, so those of new positions can be appended."""
        keys = self.attention.project_keys(self._split(self.key(inputs)))
        return KeysValues(keys, self._split(self.value(inputs)))

    def forward(
        self,
        inputs: Float[Tensor, "batch queries dim"],
        memory: KeysValues,
        mask: Bool[Tensor, "..."],
        watch: Callable[[Tensor], None] | None = None,
    ) -> Float[Tensor, "batch queries dim"]:
        """Attends from `inputs` to `memory`; `watch` is shown the weights (batch, heads, queries, keys)."""
        context = self.attention(self._split(self.query(inputs)), *memory, mask, watch)
        return self.output(context.transpose(1, 2).flatten(2))

    def _split(self, x: Float[Tensor, "batch n dim"]) -> Float[Tensor, "batch heads n head_dim"]:
        return x.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
