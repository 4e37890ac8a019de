"""Search that extends hypotheses piece by piece: the part that beam search and sampling have in common."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from nmt.data.batch import ContextSentences
from nmt.decoding.constraints import Constraints
from nmt.decoding.id_search import Hypothesis
from nmt.decoding.state import Decodable, move_rows, select_rows
from nmt.errors import CheckFailed
from nmt.text.tokenizer import BOS

NO_PROBABILITIES = (
    "A sentence has no translation, because the model's log-probabilities are NaN or -inf, or search.constraints block "
    "all pieces: check the model's weights, search in float32, or relax the constraints."
)


class Live(NamedTuple):
    """The sentences whose search is not finished, one row each. Each of them has the same number of hypotheses."""

    sentence: Int[Tensor, " sentences"]
    """Index in the batch."""
    longest: Int[Tensor, " sentences"]
    """Maximum output length, including EOS."""
    prefix: Int[Tensor, "sentences prefix"]
    """The pieces that every hypothesis begins with, padded with PAD."""
    ids: Int[Tensor, "sentences beams length"]
    """The hypotheses so far, each beginning with BOS."""
    log_probs: Float[Tensor, "sentences beams"]
    """Their log-probabilities; -inf for an unused beam."""
    extra: Any
    """The tensors that only beam search or only sampling keeps, one row per sentence."""


class Step(NamedTuple):
    """The hypotheses that a step of the search kept, for an observer.

    `parents` are beams of the previous step. A sentence has no row once its search has ended.
    """

    sentence: Int[Tensor, " sentences"]
    """Index in the batch."""
    parents: Int[Tensor, "sentences beams"]
    tokens: Int[Tensor, "sentences beams"]
    """The new pieces; PAD for a sample that has ended."""
    log_probs: Float[Tensor, "sentences beams"]
    """Log-probabilities of the whole hypotheses, in nats; -inf for an unused beam."""


Observe = Callable[[Step], None]
"""Receives every step of a search. An exception that it raises ends the search."""


class Stepwise(ABC):
    """Extends the hypotheses of all sentences of a batch by one piece at a time, until each sentence is done."""

    n_best: int
    rows_per_sentence: int
    constraints: Constraints

    attends: bool = False
    """Whether `extend` needs the attention weights, which take a model longer to compute."""

    def __call__(
        self,
        model: Decodable,
        source: Int[Tensor, "sentences source"],
        source_mask: Bool[Tensor, "sentences source"],
        prefix: Int[Tensor, "sentences prefix"] | None = None,
        context: ContextSentences | None = None,
        observe: Observe | None = None,
    ) -> list[list[Hypothesis]]:
        """Between 1 and `n_best` hypotheses per sentence, best first.

        Each begins with the sentence's row of `prefix` (padded with PAD), cut to the model's maximum output length.
        `context` holds the sentences before each source in its document. `observe` receives every step. Raises
        CheckFailed if the model's log-probabilities are NaN, or if they are -inf for every possible translation.
        """
        beams = self.rows_per_sentence
        memory, owns_memory = model.encode(source, source_mask, context=context), False
        state = model.start(memory, beams)
        prefix = source.new_empty(len(source), 0) if prefix is None else prefix
        longest = self.constraints.longest(source_mask, model.max_target, prefix)
        live = Live(
            torch.arange(len(source), device=source.device),
            longest,
            prefix,
            source.new_full((len(source), beams, 1), BOS),
            *self.begin(source, source_mask, longest),
        )
        finished: list[list[Hypothesis]] = [[] for _ in source]
        while len(live.sentence):
            weights = None
            if self.attends:
                log_probs, weights, state = model.attending_step(live.ids[:, :, -1], state, memory)
            else:
                log_probs, state = model.step(live.ids[:, :, -1], state, memory)
            live, parents, done = self.extend(live, log_probs, weights, finished)
            if observe:
                observe(Step(live.sentence, parents, live.ids[:, :, -1], live.log_probs))
            # The State has a row per hypothesis: those of the parents become those of the hypotheses.
            rows = parents + torch.arange(0, parents.numel(), beams, device=parents.device)[:, None]
            if done.any():
                kept = _fill_gaps(~done)
                # The first time, rows are copied, because Memory may hold the caller's mask or shared tensors.
                memory, owns_memory = (move_rows if owns_memory else select_rows)(memory, kept), True
                live, rows = select_rows((live, rows), kept)
            state = move_rows(state, rows.flatten())
        if not all(finished):
            raise CheckFailed(NO_PROBABILITIES)
        return [sorted(hypotheses, key=lambda one: one.score, reverse=True)[: self.n_best] for hypotheses in finished]

    @abstractmethod
    def begin(
        self,
        source: Int[Tensor, "sentences source"],
        source_mask: Bool[Tensor, "sentences source"],
        longest: Int[Tensor, " sentences"],
    ) -> tuple[Float[Tensor, "sentences beams"], Any]:
        """The log-probabilities of the empty hypotheses, and Live's `extra`."""

    @abstractmethod
    def extend(
        self,
        live: Live,
        log_probs: Float[Tensor, "sentences beams vocab"],
        weights: Float[Tensor, "sentences beams source"] | None,
        finished: list[list[Hypothesis]],
    ) -> tuple[Live, Int[Tensor, "sentences beams"], Bool[Tensor, " sentences"]]:
        """The hypotheses with one more piece, the beams that they extend, and which sentences are done.

        Appends the hypotheses that have ended to the sentence's list in `finished`. May overwrite `log_probs`.
        `weights` is None unless `attends`.
        """


def _fill_gaps(remaining: Bool[Tensor, " sentences"]) -> Int[Tensor, " remaining"]:
    """Indices of the remaining sentences: each keeps its row, except that the last ones fill the gaps."""
    size = int(remaining.sum())
    order = torch.arange(size, device=remaining.device)
    order[~remaining[:size]] = remaining[size:].nonzero().squeeze(1) + size
    return order
