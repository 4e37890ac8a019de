"""Binds a search to the model that it searches with, so that its callers see no model."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Int
from torch import Tensor
from torch.nn.utils import parametrize

from nmt.data.batch import ContextSentences
from nmt.decoding.constraints import Constraints
from nmt.decoding.state import Decodable, Hypothesis
from nmt.decoding.stepwise import Observe

Source = Int[Tensor, "sentences source"]
SourceMask = Bool[Tensor, "sentences source"]
Prefix = Int[Tensor, "sentences prefix"]


@runtime_checkable
class Algorithm(Protocol):
    """A way to search, such as beam search or sampling, that works with any model."""

    @property
    def n_best(self) -> int:
        """The largest number of hypotheses returned per sentence."""
        ...

    @property
    def rows_per_sentence(self) -> int:
        """The number of hypotheses per sentence that are extended at the same time."""
        ...

    @property
    def constraints(self) -> Constraints: ...

    def __call__(
        self,
        model: Decodable,
        source: Source,
        source_mask: SourceMask,
        prefix: Prefix | None = None,
        context: ContextSentences | None = None,
        observe: Observe | None = None,
    ) -> list[list[Hypothesis]]: ...


@dataclass(frozen=True)
class Search:
    """An algorithm bound to a model, an ensemble or an engine."""

    algorithm: Algorithm
    max_source: int | None
    """The largest number of source pieces that can be read, including EOS; None if there is no limit."""
    find: Callable[[Source, SourceMask, Prefix | None, ContextSentences | None, Observe | None], list[list[Hypothesis]]]
    at_once: int = 1
    """How many batches to search in parallel, one thread each."""

    def __call__(
        self,
        source: Source,
        source_mask: SourceMask,
        prefix: Prefix | None = None,
        context: ContextSentences | None = None,
        observe: Observe | None = None,
    ) -> list[list[Hypothesis]]:
        """At least one hypothesis per sentence, best first, beginning with the sentence's row of `prefix`.

        All tensors are on the CPU. Rows of `prefix` are padded with PAD. `context` holds the sentences before each
        source in its document. `observe` receives every step, unless an engine searches.
        """
        return self.find(source, source_mask, prefix, context, observe)


def bind(algorithm: Algorithm, model: Decodable) -> Search:
    """A search with a model, which runs in evaluation mode and is returned to its previous mode."""

    def find(
        source: Source,
        source_mask: SourceMask,
        prefix: Prefix | None,
        context: ContextSentences | None,
        observe: Observe | None,
    ) -> list[list[Hypothesis]]:
        # Parametrized weights (FixNorm) are computed once here, instead of at every use.
        with _evaluating(model), torch.inference_mode(), parametrize.cached():
            return algorithm(
                model,
                source.to(model.device),
                source_mask.to(model.device),
                None if prefix is None else prefix.to(model.device),
                None if context is None else context.to(model.device),
                observe,
            )

    return Search(algorithm, model.max_source, find)


@contextmanager
def _evaluating(model: Decodable) -> Iterator[None]:
    """Puts the model into evaluation mode inside the block, and back into its previous mode afterwards."""
    was_training = model.training
    model.train(False)
    try:
        yield
    finally:
        model.train(was_training)
