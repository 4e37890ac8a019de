"""Training pairs as the epochs draw them: joined with another one or in other pieces, if asked for."""

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

import torch

from nmt.data.batch import Example
from nmt.data.dataset import TrainingData
from nmt.data.plan import EVERY_PAIR_ONCE, Mixing
from nmt.text import Tokenizer, TokenizerPair


class Draw(NamedTuple):
    """Which training pair is drawn in which epoch, and which one is appended to it; -1 is none."""

    epoch: int
    pair: int
    partner: int = -1


class SubwordSampling:
    """Segments a training pair anew each time: BPE-dropout (Provilkov et al. 2020) or sampling (Kudo 2018).

    A segmentation depends on (seed, epoch, pair, side) alone, not on what was drawn before; so a pair that comes twice
    in an epoch has the same one. A side of more than its `longest` pieces, EOS counted, is left as it was.
    alpha: see `Tokenizer.resample`.
    """

    def __init__(self, tokenizers: TokenizerPair, alpha: float, *, seed: int, longest: Sequence[int]) -> None:
        self.tokenizers, self.alpha, self.seed, self.longest = tokenizers, alpha, seed, longest

    def __call__(self, draw: Draw, example: Example) -> Example:
        """The pair in other pieces."""
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
    """What each draw gives: the pair as it is kept, or with its partner, or segmented anew.

    mixing: which pairs and partners an epoch draws; sampling: their pieces, which may make a batch larger than its
    budget, whose lengths are those of the usual pieces.
    """

    def __init__(
        self, training: TrainingData, sampling: SubwordSampling | None = None, mixing: Mixing = EVERY_PAIR_ONCE
    ) -> None:
        self.training, self.sampling, self.mixing = training, sampling, mixing

    def __len__(self) -> int:
        return len(self.training)

    def __getitems__(self, draws: list[Draw]) -> list[Example]:
        """The pairs of a batch in one read; this is what a DataLoader calls."""
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
