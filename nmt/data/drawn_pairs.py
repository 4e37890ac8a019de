"""Training pairs as an epoch draws them: joined with another pair or segmented at random, if configured."""

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

import torch

from nmt.data.batch import Example
from nmt.data.dataset import TrainingData
from nmt.data.plan import EVERY_PAIR_ONCE, Mixing
from nmt.text import Tokenizer, TokenizerPair


class Draw(NamedTuple):
    """A training pair drawn in an epoch, and the pair appended to it (-1 if there is none)."""

    epoch: int
    pair: int
    partner: int = -1


class SubwordSampling:
    """Segments a training pair at random in each epoch: BPE-dropout (Provilkov et al. 2020) or sampling (Kudo 2018).

    A segmentation depends only on (seed, epoch, pair, side), not on earlier draws, so a pair drawn twice in an epoch
    has the same one. A side that would exceed its `longest` pieces, including EOS, keeps its usual segmentation.
    alpha: see `Tokenizer.resample`.
    """

    def __init__(self, tokenizers: TokenizerPair, alpha: float, *, seed: int, longest: Sequence[int]) -> None:
        self.tokenizers, self.alpha, self.seed, self.longest = tokenizers, alpha, seed, longest

    def __call__(self, draw: Draw, example: Example) -> Example:
        """The pair in a new segmentation."""
        index, *sides = example
        source, target = (
            self._resampled(tokenizer, ids, longest, f"{self.seed}/{draw.epoch}/{draw.pair}/{side}")
            for side, (tokenizer, ids, longest) in enumerate(zip(self.tokenizers, sides, self.longest, strict=True))
        )
        return index, source, target

    def _resampled(self, tokenizer: Tokenizer, ids: Sequence[int], longest: int, key: str) -> Sequence[int]:
        seed = int.from_bytes(hashlib.blake2b(key.encode(), digest_size=4).digest(), "big")
        found = tokenizer.resample(ids, self.alpha, seed)
        return found if len(found) < longest else ids


class DrawnPairs(torch.utils.data.Dataset[Example]):
    """The example of each draw: the stored pair, joined with its partner and segmented at random if configured.

    mixing: how an epoch draws pairs and partners; sampling: how they are segmented. A batch may exceed its budget with
    sampling, because batches are planned with the lengths of the usual segmentation.
    """

    def __init__(
        self, training: TrainingData, sampling: SubwordSampling | None = None, mixing: Mixing = EVERY_PAIR_ONCE
    ) -> None:
        self.training, self.sampling, self.mixing = training, sampling, mixing

    def __len__(self) -> int:
        return len(self.training)

    def __getitems__(self, draws: list[Draw]) -> list[Example]:
        """The examples of a batch; DataLoader calls this."""
        examples = self._joined(draws)
        if self.sampling is None:
            return examples
        return [self.sampling(draw, example) for draw, example in zip(draws, examples, strict=True)]

    def _joined(self, draws: list[Draw]) -> list[Example]:
        partners = [draw.partner for draw in draws if draw.partner >= 0]
        others = iter(self.training.__getitems__(partners) if partners else [])
        examples = []
        for draw, example in zip(draws, self.training.__getitems__([draw.pair for draw in draws]), strict=True):
            if draw.partner >= 0:
                (index, source, target), (_, more_source, more_target) = example, next(others)
                example = index, [*source, *more_source], [*target, *more_target]
            examples.append(example)
        return examples
