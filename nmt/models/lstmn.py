"""The long short-term memory-network (Cheng et al. 2016): an LSTM that attends to all its past states."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from nmt.attention import Attention, SiteWatch, VisibleKeys, lengths_to_mask
from nmt.attention.windows import QueryStates


class PastStates(NamedTuple):
    """The states that a cell has had so far, for each row: the paper's hidden and memory tapes (section 3.1).

    They hold the keys of h_i and the values [h_i; c_i] for i < t, and h~_{t-1}.
    """

    keys: Float[Tensor, "rows 1 size _"]
    values: Float[Tensor, "rows 1 size value_dim"]
    h_tilde: Float[Tensor, "rows hidden_dim"]


class Recurrence(nn.Module, ABC):
    """A recurrent network that reads padded sentences and their lengths; torch's own networks need packed sequences."""

    @abstractmethod
    def forward(
        self,
        inputs: Float[Tensor, "batch source input_dim"],
        lengths: Int[Tensor, " batch"],
        watch: SiteWatch | None = None,
    ) -> tuple[Float[Tensor, "batch source hidden_dim"], Any]:
        """The outputs, and the final states (directions, batch, _) in the form that torch's LSTM or GRU returns."""


class LSTMN(Recurrence):
    """An LSTM whose previous state is a weighted mean of all its past states (Cheng et al. 2016, section 3.1).

    s = normalizer(score(q_t, h_i)) over i < t with q_t = W_q [x_t; h~_{t-1}] (equations 4 and 5);
    [h~_t; c~_t] = sum_i s_i [h_i; c_i] (equation 6); h_t, c_t = LSTMCell(x_t, (h~_t, c~_t)) (equations 7 to 9).

    With the additive scorer this is the paper's score v . tanh(W_h h_i + W_x x_t + W_h~ h~_{t-1}), in which [W_x W_h~]
    is the scorer's query matrix times W_q. If all the weight is on t - 1, this is an ordinary LSTM. The first position
    has no past: its h~ and c~ are the initial state. Every position keeps its past for the backward pass, so training
    memory grows with the square of the length. Under autocast, everything is computed in the dtype of the inputs,
    because c~ would otherwise lose digits at every step.
    """

    def __init__(self, attention: Callable[..., Attention], input_dim: int, hidden_dim: int) -> None:
        super().__init__()
        self.hidden_dim = hidden_dim
        self.query = nn.Linear(input_dim + hidden_dim, hidden_dim, bias=False)
        self.attention = attention(query_dim=hidden_dim, key_dim=hidden_dim)
        self.cell = nn.LSTMCell(input_dim, hidden_dim)

    def start(self, like: Float[Tensor, "rows _"]) -> PastStates:
        """No past states, with the rows, dtype and device of `like`."""
        rows, dim = like.shape[0], self.hidden_dim
        keys = self.attention.project_keys(like.new_zeros(rows, 1, 0, dim))
        return PastStates(keys.to(like.dtype), like.new_zeros(rows, 1, 0, 2 * dim), like.new_zeros(rows, dim))

    def step(
        self,
        inputs: Float[Tensor, "rows input_dim"],
        previous: tuple[Float[Tensor, "rows hidden_dim"], Float[Tensor, "rows hidden_dim"]],
        past: PastStates,
        position: Int[Tensor, " rows"],
        watch: SiteWatch | None = None,
    ) -> tuple[Float[Tensor, "rows hidden_dim"], Float[Tensor, "rows hidden_dim"], PastStates]:
        """Reads one input per row; returns h_t, c_t and the past states with them added.

        `previous` is the initial state for rows at position 0, and is not used for other rows. `watch` receives the
        weights of the positions 0 to t, where position t itself has weight 0.
        """
        with torch.autocast(inputs.device.type, enabled=False):
            # One more place, for the state of this step; until it is written, the mask leaves it out.
            keys, values = (F.pad(part, (0, 0, 0, 1)) for part in (past.keys, past.values))
            mask = lengths_to_mask(position, keys.shape[2])[:, None, None, :]
            query = self.query(torch.cat([inputs, past.h_tilde], dim=-1)).unsqueeze(1)  # q_t, in equation 4
            query_states = QueryStates(query, position.unsqueeze(1))
            # Equations 5 and 6: s, and its means of h_i and c_i, side by side.
            attended = self.attention(query.unsqueeze(1), keys, values, mask, query_states, watch)[:, 0, 0]
            first = (position == 0).unsqueeze(1)
            h_tilde, c_tilde = (
                torch.where(first, initial.to(inputs.dtype), mean)
                for initial, mean in zip(previous, attended.chunk(2, dim=-1), strict=True)
            )
            hidden, cell = self.cell(inputs, (h_tilde, c_tilde))  # equations 7 to 9
            key = self.attention.project_keys(hidden[:, None, None])
            keys, values = (
                part.scatter(2, position.view(-1, 1, 1, 1).expand_as(new), new)
                for part, new in ((keys, key), (values, torch.cat([hidden, cell], dim=-1)[:, None, None]))
            )
        return hidden, cell, PastStates(keys, values, h_tilde)

    def forward(
        self,
        inputs: Float[Tensor, "batch source input_dim"],
        lengths: Int[Tensor, " batch"],
        watch: SiteWatch | None = None,
    ) -> tuple[Float[Tensor, "batch source hidden_dim"], tuple[Tensor, Tensor]]:
        """All states h_t of sentences read from left to right, and the last h and c, each (1, batch, hidden_dim).

        The initial state is zero. `lengths` are the lengths of the sentences (a CPU tensor).
        """
        zero, ends = inputs.new_zeros(inputs.shape[0], self.hidden_dim), lengths.to(inputs.device)
        past, position = self.start(zero), torch.zeros_like(ends)
        weights = WeightsByStep() if watch else None
        for piece in inputs.unbind(dim=1):
            *_, past = self.step(piece, (zero, zero), past, position, weights)
            position = torch.minimum(position + 1, ends)  # padding does not join the past
        if watch and weights:
            watch(*weights.joined())
        last = ends.view(1, -1, 1, 1) - 1
        states = past.values.squeeze(1).unsqueeze(0)
        hidden, cell = states.gather(2, last.expand(1, -1, 1, states.shape[-1])).squeeze(2).chunk(2, dim=-1)
        return states[0, :, :, : self.hidden_dim], (hidden, cell)


def lstmn_query(side: str) -> str:
    """Describes the query of an LSTMN that reads the source or the target."""
    return (
        f"a projection of [x_t; h~_{{t-1}}], where x_t is the layer's input at {side} position t and h~_{{t-1}} its "
        "previous mean of past states; attending to the layer's states before t"
    )


class WeightsByStep:
    """A SiteWatch that collects the weights of successive steps; later queries may have more keys."""

    def __init__(self) -> None:
        self._weights: list[Tensor] = []
        self._visible: list[VisibleKeys] = []

    def __call__(self, weights: Tensor, visible: VisibleKeys) -> None:
        self._weights.append(weights)
        self._visible.append(visible)

    def joined(self) -> tuple[Tensor, VisibleKeys]:
        """The weights of all queries, (batch, heads, queries, keys), and the keys that they see.

        Keys that a query did not have are blocked.
        """
        size = self._weights[-1].shape[-1]
        weights = torch.cat([F.pad(row, (0, size - row.shape[-1])) for row in self._weights], dim=2)
        return weights, VisibleKeys.join([visible.widened(size) for visible in self._visible])
