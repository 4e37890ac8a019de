"""A search as the translator sees it: lists of ids go in, hypotheses come out. Knows neither tensors nor torch."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

from nmt.data.example import TokenizedPair
from nmt.decoding.search_settings import ConstraintSettings


class Hypothesis(NamedTuple):
    """A finished translation."""

    ids: list[int]
    """Target pieces, without BOS and EOS."""
    log_prob: float
    """The sum of the log-probabilities of the pieces and EOS, in nats."""
    score: float
    """The value by which hypotheses are ranked: log_prob adjusted by the penalties of the search."""


class IdBatch(NamedTuple):
    """Sources to search together. The ids contain neither BOS nor EOS."""

    sources: Sequence[Sequence[int]]
    prefixes: Sequence[Sequence[int]] | None = None
    """What the hypotheses of each source begin with."""
    earlier: Sequence[Sequence[TokenizedPair]] | None = None
    """The sentence pairs before each source in its document."""


@runtime_checkable
class SearchTraits(Protocol):
    """The properties of a search that the translator needs."""

    @property
    def n_best(self) -> int:
        """The largest number of hypotheses returned per sentence."""
        ...

    @property
    def rows_per_sentence(self) -> int:
        """The number of hypotheses per sentence that are extended at the same time."""
        ...

    @property
    def constraints(self) -> ConstraintSettings: ...


def _nothing() -> None:
    pass


@dataclass(frozen=True)
class Search:
    """A way to search, bound to a model, an ensemble or an engine."""

    algorithm: SearchTraits
    max_source: int | None
    """The largest number of source pieces that can be read, including EOS; None if there is no limit."""
    find: Callable[[IdBatch, Callable[[Any], None] | None], list[list[Hypothesis]]]
    at_once: int = 1
    """How many batches to search in parallel, one thread each."""
    begin_in_fork: Callable[[], None] = _nothing
    """Called in a forked process before its first search."""

    def __call__(self, batch: IdBatch, observe: Callable[[Any], None] | None = None) -> list[list[Hypothesis]]:
        """At least one hypothesis per source, best first, beginning with the source's prefix.

        `observe` receives every step, unless an engine searches.
        """
        return self.find(batch, observe)
