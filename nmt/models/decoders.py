"""The recurrent cells of Luong's decoder: the config group `decoder`, one class for each choice."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any

from jaxtyping import Float, Int
from torch import Tensor, nn

from nmt.attention import Attention, SiteWatch
from nmt.models.lstmn import LSTMN, PastStates

Hidden = Float[Tensor, "rows decoder_dim"]


class RecurrentDecoder(ABC):
    """A kind of recurrent cell for a stack of layers that reads one piece at a time.

    It has no parameters: `cell` makes the module of a layer, which the model keeps, and `step` runs it.
    """

    @abstractmethod
    def cell(self, input_dim: int, decoder_dim: int) -> nn.Module: ...

    def start(self, cell: Any, like: Float[Tensor, "rows _"]) -> Any:
        """A layer's past before the first step, as (nested) tuples of tensors with the rows and dtype of `like`.

        () if the hidden state and the cell are all that a layer remembers.
        """
        return ()

    @abstractmethod
    def step(
        self,
        cell: Any,
        inputs: Float[Tensor, "rows input_dim"],
        previous: tuple[Hidden, Hidden],
        past: Any,
        position: Int[Tensor, " rows"],
        watch: SiteWatch | None = None,
    ) -> tuple[Hidden, Hidden, Any]:
        """Reads one input per row; returns the hidden state, the cell, and the past of the next step.

        `previous` are the hidden state and cell before the step, and `position` counts the pieces read so far.
        """

    def attentions(self, cells: Iterable[Any]) -> list[Attention]:
        """The attention of each layer to its own past (site decoder_self); empty if there is none."""
        return []


class LSTMDecoder(RecurrentDecoder):
    """LSTMs, as in the paper (Luong et al. 2015, section 3)."""

    def cell(self, input_dim: int, decoder_dim: int) -> nn.LSTMCell:
        return nn.LSTMCell(input_dim, decoder_dim)

    def step(
        self,
        cell: Callable[[Tensor, tuple[Hidden, Hidden]], tuple[Hidden, Hidden]],  # not nn.LSTMCell if quantized
        inputs: Float[Tensor, "rows input_dim"],
        previous: tuple[Hidden, Hidden],
        past: tuple[()],
        position: Int[Tensor, " rows"],
        watch: SiteWatch | None = None,
    ) -> tuple[Hidden, Hidden, tuple[()]]:
        return *cell(inputs, previous), past


class LSTMNDecoder(RecurrentDecoder):
    """LSTMNs, which attend to their own past (Cheng et al. 2016; site decoder_self)."""

    def __init__(self, attention: Callable[..., Attention]) -> None:
        self.attention = attention

    def cell(self, input_dim: int, decoder_dim: int) -> LSTMN:
        return LSTMN(self.attention, input_dim, decoder_dim)

    def start(self, cell: LSTMN, like: Float[Tensor, "rows _"]) -> PastStates:
        return cell.start(like)

    def step(
        self,
        cell: LSTMN,
        inputs: Float[Tensor, "rows input_dim"],
        previous: tuple[Hidden, Hidden],
        past: PastStates,
        position: Int[Tensor, " rows"],
        watch: SiteWatch | None = None,
    ) -> tuple[Hidden, Hidden, PastStates]:
        return cell.step(inputs, previous, past, position, watch)

    def attentions(self, cells: Iterable[Any]) -> list[Attention]:
        return [cell.attention for cell in cells]
