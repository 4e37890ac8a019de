"""What search asks of a model, and how its values are cut to the rows that go on."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

Memory = Any
"""A NamedTuple of tensors, nested where needed, with one row per sentence on axis 0: what a source sentence fixes."""

State = Any
"""A NamedTuple of tensors, nested where needed, with row sentence * beams + beam on axis 0: what changes each step.

It belongs to the search, which writes into it: what `step` gives shares no memory between its leaves or with anything
else, and no leaf is expanded.
"""


class Hypothesis(NamedTuple):
    """A finished translation."""

    ids: list[int]
    """Target pieces, without BOS and EOS."""
    log_prob: float
    """Sum over the pieces and EOS, in nats."""
    score: float
    """What hypotheses are ranked by: log_prob, and the penalties of the search."""


# The test run checks the types of arguments, and can check protocols only so.
@runtime_checkable
class Decodable(Protocol):
    """A model seen from search. Beams are a query axis: `memory` is never copied per beam."""

    @property
    def training(self) -> bool:
        """Whether the model drops units."""
        ...

    @property
    def max_source(self) -> int | None:
        """The most pieces of a source, EOS counted; None where there is no limit."""
        ...

    @property
    def max_target(self) -> int | None:
        """The most pieces of an output, EOS counted; None where there is no limit."""
        ...

    def train(self, mode: bool = True) -> Any:
        """Switch between training (dropout) and evaluation."""
        ...

    def encode(self, source: Int[Tensor, "sentences source"], source_mask: Bool[Tensor, "sentences source"]) -> Memory:
        """Everything that depends on the source alone."""
        ...

    def start(self, memory: Memory, beams: int) -> State:
        """The state before the first token of every beam."""
        ...

    def step(
        self, tokens: Int[Tensor, "sentences beams"], state: State, memory: Memory
    ) -> tuple[Float[Tensor, "sentences beams vocab"], State]:
        """Log-probabilities (nats) of the token after `tokens`. The `state` passed in may not be used again."""
        ...

    def attending_step(
        self, tokens: Int[Tensor, "sentences beams"], state: State, memory: Memory
    ) -> tuple[Float[Tensor, "sentences beams vocab"], Float[Tensor, "sentences beams source"], State]:
        """The same as `step`, with what each beam attended to: the last layer's cross weights, mean of the heads."""
        ...


@runtime_checkable
class Search(Protocol):
    """How the translations of a batch are found: beam search, or sampling."""

    @property
    def n_best(self) -> int:
        """The most hypotheses that a sentence gets."""
        ...

    @property
    def rows_per_sentence(self) -> int:
        """How many hypotheses of a sentence are searched at the same time."""
        ...

    def __call__(
        self,
        model: Decodable,
        source: Int[Tensor, "sentences source"],
        source_mask: Bool[Tensor, "sentences source"],
        prefix: Int[Tensor, "sentences prefix"] | None = None,
    ) -> list[list[Hypothesis]]:
        """At least one hypothesis per sentence, best first, that begins with its row of `prefix` (PAD fills up)."""
        ...


def select_rows(tree: Any, rows: Int[Tensor, " rows"]) -> Any:
    """The rows of every tensor of a nested tuple, in the order of `rows`; named tuples keep their type.

    Raises ValueError where a leaf is neither a tensor nor a tuple.
    """
    if isinstance(tree, Tensor):
        return tree.index_select(0, rows)
    return _rebuilt(tree, [select_rows(child, rows) for child in _children(tree)])


def move_rows(tree: Any, rows: Int[Tensor, " rows"]) -> Any:
    """`select_rows` in place: only rows that move are copied, over the first ones, and the rest is cut off.

    What `tree` held before is lost, and leaves may share no memory. Raises ValueError where a leaf is neither a tensor
    nor a tuple.
    """
    moved = (rows != torch.arange(len(rows), device=rows.device)).nonzero().squeeze(1)
    return _move(tree, len(rows), rows[moved], moved)


def _move(tree: Any, size: int, origins: Int[Tensor, " moved"], places: Int[Tensor, " moved"]) -> Any:
    if isinstance(tree, Tensor):
        if len(places):
            tree.index_copy_(0, places, tree.index_select(0, origins))
        return tree[:size]
    return _rebuilt(tree, [_move(child, size, origins, places) for child in _children(tree)])


def _children(tree: Any) -> tuple[Any, ...]:
    if not isinstance(tree, tuple):
        raise ValueError(f"Memory and State hold tensors and tuples, not {type(tree).__name__}: make it a tensor.")
    return tree


def _rebuilt(tree: Any, children: Sequence[Any]) -> Any:
    """A tuple of the same type with other children."""
    return type(tree)(*children) if hasattr(tree, "_fields") else tuple(children)
