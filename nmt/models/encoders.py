"""The recurrent encoders of Bahdanau's and Luong's models: the config group `encoder`, one class for each choice."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from nmt.attention import Attention, SiteWatch
from nmt.errors import Mistake
from nmt.kernels.dropout import Dropout
from nmt.kernels.lstm import lstm_supported
from nmt.models.base import Annotations, Embedded, SourceMask, Watch
from nmt.models.lstmn import LSTMN, Recurrence

FinalStates = tuple[Float[Tensor, "directions batch state_dim"], ...]
"""The last hidden states of a layer and, for an LSTM, its last cells."""


class RecurrentEncoder(ABC):
    """A way to read the source with a stack of recurrent layers.

    It has no parameters: `layer` makes a module, the model keeps the modules, and `read` runs them.
    """

    hands_over_states = False
    """Whether Luong's decoder starts from the final states as they are, instead of from tanh(linear) of them."""

    @abstractmethod
    def layer(self, network: type[nn.LSTM] | type[nn.GRU], input_dim: int, encoder_dim: int) -> nn.Module:
        """A layer with outputs of width `encoder_dim`: a `network` (the model's kind), or a Recurrence of its own."""

    def state_dim(self, encoder_dim: int) -> int:
        """The width of a final state, which belongs to one direction. Raises Mistake for an impossible width."""
        return encoder_dim

    def reading_order(self, lengths: Int[Tensor, " batch"], size: int) -> Int[Tensor, "batch {size}"] | None:
        """The positions of the pieces in the order in which they are read; None for the order of the sentence.

        Reordering twice must restore the order of the sentence.
        """
        return None

    def attentions(self, layers: Iterable[Any]) -> list[Attention]:
        """The attention of each layer to its own past (site encoder_self); empty if there is none."""
        return []

    def read(
        self,
        layers: Iterable[nn.Module],
        embedded: Embedded,
        source_mask: SourceMask,
        *,
        input_dropout: Dropout,
        output_dropout: Dropout,
        watch: Watch | None = None,
    ) -> tuple[Annotations, list[FinalStates]]:
        """The annotations h_1 ... h_n of each sentence, and the final states of each layer.

        Dropout is applied to the input of the stack and to the output of each layer.
        """
        lengths = source_mask.sum(dim=1).cpu()  # packing needs the lengths on the CPU
        order = self.reading_order(lengths, embedded.shape[1])
        states = input_dropout(_reordered(embedded, order))  # the masks are drawn in the order of reading
        final = []
        for number, layer in enumerate(layers):
            outputs, last = run_layer(layer, states, lengths, watch and partial(watch, "encoder_self", number))
            states = output_dropout(outputs)
            final.append((last,) if isinstance(last, Tensor) else tuple(last))
        return _reordered(states, order), final


class Bidirectional(RecurrentEncoder):
    """h_j = [h_j forward; h_j backward] (Bahdanau et al. 2015, section 3.2). Each direction has half of the width."""

    def layer(self, network: type[nn.LSTM] | type[nn.GRU], input_dim: int, encoder_dim: int) -> nn.Module:
        return network(input_dim, self.state_dim(encoder_dim), batch_first=True, bidirectional=True)

    def state_dim(self, encoder_dim: int) -> int:
        if encoder_dim % 2:
            raise Mistake(f"encoder_dim is {encoder_dim}; it must be even, because each direction gets half of it.")
        return encoder_dim // 2


class Reversed(RecurrentEncoder):
    """Reads the pieces from the last to the first, then EOS, and hands its final states to the decoder unchanged
    (Luong et al. 2015, section 4.2; Sutskever et al. 2014).
    """

    hands_over_states = True

    def layer(self, network: type[nn.LSTM] | type[nn.GRU], input_dim: int, encoder_dim: int) -> nn.Module:
        return network(input_dim, encoder_dim, batch_first=True)

    def reading_order(self, lengths: Int[Tensor, " batch"], size: int) -> Int[Tensor, "batch {size}"]:
        # EOS and the padding stay where they are.
        positions, ends = torch.arange(size, device=lengths.device), lengths.unsqueeze(1) - 1
        return torch.where(positions < ends, ends - 1 - positions, positions)


class LSTMNEncoder(RecurrentEncoder):
    """Reads from left to right with LSTMNs, which attend to their own past (Cheng et al. 2016; site encoder_self).

    An LSTMN is neither torch's GRU nor its LSTM, so it is the same in every model.
    """

    def __init__(self, attention: Callable[..., Attention]) -> None:
        self.attention = attention

    def layer(self, network: type[nn.LSTM] | type[nn.GRU], input_dim: int, encoder_dim: int) -> LSTMN:
        return LSTMN(self.attention, input_dim, encoder_dim)

    def attentions(self, layers: Iterable[Any]) -> list[Attention]:
        return [layer.attention for layer in layers]


def run_layer(
    network: nn.Module,
    embedded: Float[Tensor, "batch source embedding_dim"],
    lengths: Int[Tensor, " batch"],
    watch: SiteWatch | None = None,
) -> tuple[Float[Tensor, "batch source encoder_dim"], Any]:
    """The outputs and final states of a GRU, LSTM or Recurrence over sentences of the given lengths (a CPU tensor).

    `watch` receives the attention weights of a Recurrence that has any.
    """
    if isinstance(network, Recurrence):
        return network(embedded, lengths, watch)
    # Packing lets the backward direction start at each sentence's last piece instead of its padding.
    packed = pack_padded_sequence(embedded, lengths, batch_first=True, enforce_sorted=False)
    with lstm_supported(network):
        outputs, final = network(packed)
    return pad_packed_sequence(outputs, batch_first=True, total_length=embedded.shape[1])[0], final


def _reordered(
    states: Float[Tensor, "batch source dim"], order: Int[Tensor, "batch source"] | None
) -> Float[Tensor, "batch source dim"]:
    if order is None:
        return states
    return states.gather(1, order.to(states.device).unsqueeze(-1).expand_as(states))
