"""Training pairs as they are drawn in an epoch: joined with another pair and changed at random, if configured."""

from collections.abc import Callable, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Int

from nmt.data.dataset import TrainingData
from nmt.data.documents import NO_CONTEXT, ContextWindow
from nmt.data.example import Example
from nmt.data.keyed_seed import keyed_seed
from nmt.data.plan import EVERY_PAIR_ONCE, Mixing
from nmt.text import Tokenizer, TokenizerPair


class Draw(NamedTuple):
    """A training pair drawn in an epoch, and the pair appended to it (-1 if there is none)."""

    epoch: int
    pair: int
    partner: int = -1


class SubwordSampling:
    """Subword regularization: segments each training pair at random, anew in every epoch.

    With a byte-pair model, this is BPE-dropout (Provilkov et al. 2020). With a unigram model, segmentations are sampled
    from the model (Kudo 2018). A segmentation depends only on (seed, epoch, pair, side), not on earlier draws, so a
    pair drawn twice in an epoch is segmented the same way. `longest` holds the maximum number of pieces of each side,
    including EOS: a side that would exceed it keeps its usual segmentation. alpha: see `Tokenizer.resample`.
    """

    def __init__(self, tokenizers: TokenizerPair, alpha: float, *, seed: int, longest: Sequence[int]) -> None:
        self.tokenizers, self.alpha, self.seed, self.longest = tokenizers, alpha, seed, longest

    def __call__(self, draw: Draw, example: Example) -> Example:
        """Returns the pair with a new segmentation."""
        source, target = (
            self._resampled(tokenizer, ids, longest=longest, key=f"{self.seed}/{draw.epoch}/{draw.pair}/{side}")
            for side, (tokenizer, ids, longest) in enumerate(
                zip(self.tokenizers, (example.source, example.target), self.longest, strict=True)
            )
        )
        return Example(example.number, source, target)

    def _resampled(self, tokenizer: Tokenizer, ids: Sequence[int], *, longest: int, key: str) -> Sequence[int]:
        resampled = tokenizer.resample(ids, self.alpha, keyed_seed(key, size=4))
        return resampled if len(resampled) < longest else ids


class DrawnPairs(torch.utils.data.Dataset[Example]):
    """The example of each draw: the stored pair, joined with its partner and changed at random if configured.

    mixing: how an epoch draws pairs and partners; changes: random changes, in their order; window: which earlier pairs
    of the document are read with each pair. Batches are planned from `lengths`, the lengths of the pairs with their
    context. With changes, a batch may exceed its budget, because the lengths are those of the unchanged pairs.
    """

    def __init__(
        self,
        training: TrainingData,
        changes: Sequence[Callable[[Draw, Example], Example]] = (),
        mixing: Mixing = EVERY_PAIR_ONCE,
        window: ContextWindow = NO_CONTEXT,
    ) -> None:
        self.training, self.changes, self.mixing, self.window = training, changes, mixing, window
        documents = training.documents
        self.lengths = training.lengths
        if documents is not None and window.sentences:
            self.lengths = lengths_in_context(training.lengths, documents, window)

    def __len__(self) -> int:
        return len(self.training)

    def __getitems__(self, draws: list[Draw]) -> list[Example]:
        """The examples of a batch. DataLoader calls this."""
        documents = self.training.documents
        if documents is None or not self.window.sentences:
            return self._changed(draws)
        firsts = [self._first_of_window(draw.pair, documents) for draw in draws]
        # One read for the whole batch: the windows of all draws, one after the other.
        draws_of_windows = [
            Draw(draw.epoch, pair)
            for draw, first in zip(draws, firsts, strict=True)
            for pair in range(first, draw.pair + 1)
        ]
        changed, examples = iter(self._changed(draws_of_windows)), []
        for draw, first in zip(draws, firsts, strict=True):
            *window, example = islice(changed, draw.pair + 1 - first)
            earlier = [(preceding.source, preceding.target) for preceding in window]
            examples.append(self.window(example._replace(earlier=earlier)))
        return examples

    def _first_of_window(self, pair: int, documents: Int[np.ndarray, " pairs"]) -> int:
        """The index of the first pair in a pair's window. The pairs of a document are consecutive."""
        first = max(0, pair - self.window.sentences)
        return first + int((documents[first : pair + 1] != documents[pair]).sum())

    def _changed(self, draws: list[Draw]) -> list[Example]:
        examples = self._joined(draws)
        for change in self.changes:
            examples = [change(draw, example) for draw, example in zip(draws, examples, strict=True)]
        return examples

    def _joined(self, draws: list[Draw]) -> list[Example]:
        partners = [draw.partner for draw in draws if draw.partner >= 0]
        appended = iter(self.training.__getitems__(partners) if partners else [])
        examples = []
        for draw, example in zip(draws, self.training.__getitems__([draw.pair for draw in draws]), strict=True):
            if draw.partner < 0:
                examples.append(example)
            else:
                partner = next(appended)
                sides = [*example.source, *partner.source], [*example.target, *partner.target]
                examples.append(Example(example.number, *sides))
        return examples


def lengths_in_context(
    lengths: Int[np.ndarray, "pairs 2"], documents: Int[np.ndarray, " pairs"], window: ContextWindow
) -> Int[np.ndarray, "pairs 2"]:
    """The lengths of both sides plus those of the earlier sentences in the window; all lengths include EOS.

    The pairs of a document must be consecutive. Earlier sentences add to the target length only with
    `window.translations`.
    """
    total = lengths.copy()
    for back in range(1, window.sentences + 1):
        same = documents[back:] == documents[:-back]
        grown = np.where(same[:, None], lengths[:-back], 0)
        total[back:, 0] += grown[:, 0]
        if window.translations:
            total[back:, 1] += grown[:, 1]
    return total
