"""Binds a search to the model that it searches with, so that its callers see neither a model nor tensors."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Int
from torch import Tensor
from torch.nn.utils import parametrize

from nmt.data.batch import ContextSentences, context_sentences, pad, pad_source
from nmt.decoding.id_search import Hypothesis, IdBatch, Search, SearchTraits
from nmt.decoding.state import Decodable
from nmt.decoding.stepwise import Observe


@runtime_checkable
class Algorithm(SearchTraits, Protocol):
    """A way to search, such as beam search or sampling, that works with any model."""

    def __call__(
        self,
        model: Decodable,
        source: Int[Tensor, "sentences source"],
        source_mask: Bool[Tensor, "sentences source"],
        prefix: Int[Tensor, "sentences prefix"] | None = None,
        context: ContextSentences | None = None,
        observe: Observe | None = None,
    ) -> list[list[Hypothesis]]: ...


def bind(algorithm: Algorithm, model: Decodable) -> Search:
    """A search with a model, which runs in evaluation mode and is returned to its previous mode."""

    def find(batch: IdBatch, observe: Observe | None) -> list[list[Hypothesis]]:
        source, source_mask = pad_source(batch.sources)
        prefix = pad(batch.prefixes) if batch.prefixes else None
        context = context_sentences(batch.earlier) if batch.earlier else None
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

    # Threads that torch started in the parent do not exist in a fork. With more than one thread, torch would wait for
    # them forever.
    return Search(algorithm, model.max_source, find, begin_in_fork=partial(torch.set_num_threads, 1))


@contextmanager
def _evaluating(model: Decodable) -> Iterator[None]:
    """Puts the model into evaluation mode inside the block, and back into its previous mode afterwards."""
    was_training = model.training
    model.train(False)
    try:
        yield
    finally:
        model.train(was_training)
