"""Sentences as padded tensors. Padding masks are made here and nowhere else."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from nmt.text import BOS, EOS, PAD

Example = tuple[int, Sequence[int], Sequence[int]]
"""Index of a sentence pair in its corpus, source ids, target ids; without BOS and EOS."""


class Batch(NamedTuple):
    """Sentence pairs, padded at the end; masks are True at tokens.

    `source` ends in EOS; `target_input` is BOS y_1 ... y_T and `target_output` is y_1 ... y_T EOS.
    """

    source: Int[Tensor, "batch source"]
    source_mask: Bool[Tensor, "batch source"]
    target_input: Int[Tensor, "batch target"]
    target_output: Int[Tensor, "batch target"]
    indices: Int[Tensor, " batch"]

    @property
    def tokens(self) -> int:
        """Number of tokens to predict: target tokens, EOS included."""
        return int((self.target_output != PAD).sum())


def collate(examples: Sequence[Example]) -> Batch:
    """A batch of the examples, in their order. Raises ValueError if there are none."""
    source, source_mask = pad_source([source for _, source, _ in examples])
    return Batch(
        source=source,
        source_mask=source_mask,
        target_input=pad([[BOS, *target] for _, _, target in examples]),
        target_output=pad([[*target, EOS] for _, _, target in examples]),
        indices=torch.tensor([index for index, _, _ in examples]),
    )


def separated(batch: Batch) -> list[Example]:
    """The examples of a batch: the inverse of `collate`."""
    sources, targets = (
        [[token for token in row if token != PAD][:-1] for row in side.tolist()]
        for side in (batch.source, batch.target_output)
    )
    return [*zip(batch.indices.tolist(), sources, targets, strict=True)]


def pad_source(ids: Sequence[Sequence[int]]) -> tuple[Int[Tensor, "batch source"], Bool[Tensor, "batch source"]]:
    """Source sentences (without EOS) as rows that end in EOS and PAD, and their mask, True at tokens and EOS.

    Raises ValueError if there are none.
    """
    source = pad([[*row, EOS] for row in ids])
    return source, source != PAD


def pad(rows: Sequence[Sequence[int]]) -> Int[Tensor, "batch length"]:
    """Rows of ids, padded to the longest. Raises ValueError if there are none."""
    if not rows:
        raise ValueError("A batch needs at least one sentence.")
    longest = max(map(len, rows))
    return torch.tensor([[*row, *[PAD] * (longest - len(row))] for row in rows], dtype=torch.long)
