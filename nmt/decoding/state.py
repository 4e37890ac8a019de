"""The interface between search and models, and operations on the rows of a model's Memory and State."""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from nmt.data.batch import ContextSentences

Memory = Any
"""Whatever does not change between steps: a (nested) NamedTuple of tensors, one row per sentence on axis 0."""

State = Any
"""Whatever changes at each step: a (nested) NamedTuple of tensors, row = sentence * beams + beam on axis 0.

The search owns the State and writes into it. So the tensors that `step` returns must not share memory with each other
or with anything else, and none may be an expanded view.
"""


# The runtime type checks in the tests need this decorator.
@runtime_checkable
class Decodable(Protocol):
    """A model as search sees it. The beams of a sentence are an axis of queries, so Memory is not copied per beam."""

    @property
    def device(self) -> torch.device:
        """The device on which the inputs must be."""
        ...

    @property
    def training(self) -> bool:
        """Whether dropout is active."""
        ...

    @property
    def max_source(self) -> int | None:
        """The largest number of source pieces that the model supports, including EOS; None if there is no limit."""
        ...

    @property
    def max_target(self) -> int | None:
        """The largest number of target pieces that the model supports, including EOS; None if there is no limit."""
        ...

    def train(self, mode: bool = True) -> Any:
        """Switches to training mode, with dropout, or to evaluation mode."""
        ...

    def encode(
        self,
        source: Int[Tensor, "sentences source"],
        source_mask: Bool[Tensor, "sentences source"],
        *,
        context: ContextSentences | None = None,
    ) -> Memory:
        """The Memory of each source and, if there is a context, of the sentences before it in its document."""
        ...

    def start(self, memory: Memory, beams: int) -> State:
        """The State before the first token."""
        ...

    def step(
        self, tokens: Int[Tensor, "sentences beams"], state: State, memory: Memory
    ) -> tuple[Float[Tensor, "sentences beams vocab"], State]:
        """Log-probabilities (nats) of the token after `tokens`, and the new State. `state` must not be used again.

        The search may overwrite the log-probabilities, so they must have their own memory and be at least float32. The
        same holds for `attending_step`.
        """
        ...

    def attending_step(
        self, tokens: Int[Tensor, "sentences beams"], state: State, memory: Memory
    ) -> tuple[Float[Tensor, "sentences beams vocab"], Float[Tensor, "sentences beams source"], State]:
        """Like `step`, but also returns the last layer's cross attention weights, averaged over the heads."""
        ...


def select_rows(tree: Any, rows: Int[Tensor, " rows"]) -> Any:
    """Indexes every tensor of a nested tuple by `rows` on axis 0; named tuples keep their type.

    Raises TypeError for a leaf that is neither a tensor nor a tuple.
    """
    if isinstance(tree, Tensor):
        return tree.index_select(0, rows)
    return _rebuilt(tree, [select_rows(child, rows) for child in _children(tree)])


def move_rows(tree: Any, rows: Int[Tensor, " rows"]) -> Any:
    """Like `select_rows`, but in place: copies only the rows that move, and returns views of the first len(rows) rows.

    Overwrites `tree`, whose leaves must not share memory. Raises TypeError for a leaf that is neither a tensor nor a
    tuple.
    """
    moved = (rows != torch.arange(len(rows), device=rows.device)).nonzero().squeeze(1)
    return _move(tree, len(rows), rows[moved], moved)


def _move(tree: Any, size: int, origins: Int[Tensor, " moved"], places: Int[Tensor, " moved"]) -> Any:
    if isinstance(tree, Tensor):
        if len(places):
            tree.index_copy_(0, places, tree.index_select(0, origins))
        return tree[:size] if size < len(tree) else tree
    return _rebuilt(tree, [_move(child, size, origins, places) for child in _children(tree)])


def _children(tree: Any) -> tuple[Any, ...]:
    if not isinstance(tree, tuple):
        raise TypeError(
            f"Memory and State may contain only tensors and tuples, not {type(tree).__name__}; make it a tensor."
        )
    return tree


def _rebuilt(tree: Any, children: Sequence[Any]) -> Any:
    """A tuple of the type of `tree` with new children."""
    return type(tree)(*children) if hasattr(tree, "_fields") else tuple(children)
