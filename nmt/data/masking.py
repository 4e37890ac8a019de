"""Sentences with masked pieces to predict, as in BERT (Devlin et al. 2019, section 3.1)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from nmt.data.batch import pad, pad_source
from nmt.data.dataset import TrainingData
from nmt.data.drawn_pairs import Draw, DrawnPairs
from nmt.data.example import Example
from nmt.data.keyed_seed import keyed_seed
from nmt.data.plan import Mixing
from nmt.text import EOS, PAD, UNK

MASK = UNK
"""The piece that replaces a masked one.

With byte fallback, UNK has no other use, and word dropout and SimCut use it in the same way. A new piece would change
the vocabulary, which the translation model inherits.
"""
_FIRST_PIECE = EOS + 1


@dataclass(frozen=True)
class Masking:
    """Which pieces of a sentence are predicted, and what the encoder reads in their place.

    Of n pieces, round(share n), but at least one, are predicted, as in the authors' code; EOS never is. Each of them is
    replaced by MASK with probability `mask` and by a random piece with probability `random`; otherwise it is unchanged.
    """

    vocabulary: int
    """Size of the vocabulary, including the four special pieces, which are never drawn at random."""
    share: float = 0.15
    mask: float = 0.8
    random: float = 0.1

    def __call__(self, index: int, ids: Sequence[int], key: str) -> Example:
        """The pieces that the encoder reads, and the pieces to predict, with PAD where nothing is predicted.

        Both depend only on the arguments; `key` identifies the draw, such as 'seed/epoch/sentence'.
        """
        random = np.random.default_rng(keyed_seed(key))
        pieces = np.array(ids)
        chosen = random.permutation(len(pieces))[: max(1, round(self.share * len(pieces)))]
        fate = random.random(len(chosen))
        any_piece = random.integers(_FIRST_PIECE, self.vocabulary, len(chosen))
        kept = pieces[chosen]
        read, predicted = pieces.copy(), np.full_like(pieces, PAD)
        predicted[chosen] = kept
        read[chosen] = np.where(fate < self.mask, MASK, np.where(fate < self.mask + self.random, any_piece, kept))
        return Example(index, read.tolist(), predicted.tolist())


class MaskedLines(DrawnPairs):
    """Training lines with masked pieces, which are drawn anew in each epoch from (seed, epoch, line)."""

    def __init__(self, training: TrainingData, masking: Masking, seed: int, mixing: Mixing) -> None:
        super().__init__(training, mixing=mixing)
        self.masking, self.seed = masking, seed

    def __getitems__(self, draws: list[Draw]) -> list[Example]:
        lines = self.training.__getitems__([draw.pair for draw in draws])
        return [
            self.masking(line.number, line.source, f"{self.seed}/{draw.epoch}/{draw.pair}")
            for draw, line in zip(draws, lines, strict=True)
        ]


class MaskedBatch(NamedTuple):
    """Sentences with masked pieces, padded at the end.

    `source` ends in EOS; the mask is True at pieces and EOS. `predicted` is PAD where nothing is predicted.
    """

    source: Int[Tensor, "batch source"]
    source_mask: Bool[Tensor, "batch source"]
    predicted: Int[Tensor, "batch source"]
    indices: Int[Tensor, " batch"]

    @property
    def token_count(self) -> Int[Tensor, ""]:
        """Number of pieces to predict. Unlike `tokens`, it does not wait for a GPU."""
        return (self.predicted != PAD).sum()

    @property
    def tokens(self) -> int:
        """`token_count` as a number."""
        return int(self.token_count)

    @property
    def examples(self) -> list[Example]:
        """The index of each sentence, the pieces that the encoder reads, and the pieces to predict."""
        rows = zip(self.indices.tolist(), self.source.tolist(), self.predicted.tolist(), strict=True)
        return [
            Example(
                index,
                [piece for piece in read if piece not in (PAD, EOS)],
                [piece for piece in predicted if piece != PAD],
            )
            for index, read, predicted in rows
        ]


def collate_masked(examples: Sequence[Example]) -> MaskedBatch:
    """Pads examples from `Masking` into a batch. Raises ValueError if there are none."""
    source, mask = pad_source([example.source for example in examples])
    # One PAD for the EOS of the source, which is never predicted.
    predicted = pad([[*example.target, PAD] for example in examples])
    indices = torch.tensor([example.number for example in examples])
    return MaskedBatch(source=source, source_mask=mask, predicted=predicted, indices=indices)
