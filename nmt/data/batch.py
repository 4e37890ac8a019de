"""Sentences as padded tensors, and their masks."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from nmt.data.example import Example, TokenizedPair
from nmt.text import BOS, EOS, PAD


class ContextSentences(NamedTuple):
    """The context of a batch: the sentences that precede its own in their documents, each distinct pair once.

    Masks are True at tokens. `target_input` begins with BOS.
    """

    source: Int[Tensor, "rows source"]
    source_mask: Bool[Tensor, "rows source"]
    target_input: Int[Tensor, "rows target"]
    target_mask: Bool[Tensor, "rows target"]
    rows: Int[Tensor, "batch sentences"]
    """For each sentence of the batch, the rows of its earlier sentences in document order.

    A sentence with fewer earlier sentences is padded with -1 at the start.
    """

    def to(self, device: torch.device) -> "ContextSentences":
        """The sentences on a device."""
        return ContextSentences(*(part.to(device) for part in self))


class Batch(NamedTuple):
    """Sentence pairs, padded at the end; masks are True at tokens.

    `source` ends in EOS; `target_input` is BOS y_1 ... y_T and `target_output` is y_1 ... y_T EOS.
    """

    source: Int[Tensor, "batch source"]
    source_mask: Bool[Tensor, "batch source"]
    target_input: Int[Tensor, "batch target"]
    target_output: Int[Tensor, "batch target"]
    indices: Int[Tensor, " batch"]
    context: ContextSentences | None = None
    """None if no sentence has earlier sentences, unless `collate` is called with `always_context`."""

    def to(self, device: torch.device) -> "Batch":
        """The batch on a device."""
        return Batch(
            source=self.source.to(device),
            source_mask=self.source_mask.to(device),
            target_input=self.target_input.to(device),
            target_output=self.target_output.to(device),
            indices=self.indices.to(device),
            context=None if self.context is None else self.context.to(device),
        )

    @property
    def token_count(self) -> Int[Tensor, ""]:
        """Number of tokens to predict: target tokens, EOS included. Unlike `tokens`, it does not wait for a GPU."""
        return (self.target_output != PAD).sum()

    @property
    def tokens(self) -> int:
        """`token_count` as a number."""
        return int(self.token_count)


def collate(examples: Sequence[Example], *, always_context: bool = False) -> Batch:
    """Pads the examples into a batch, in the order given. Raises ValueError if there are none.

    `always_context` is passed to `context_sentences` as `always`.
    """
    source, source_mask = pad_source([example.source for example in examples])
    return Batch(
        source=source,
        source_mask=source_mask,
        target_input=pad([[BOS, *example.target] for example in examples]),
        target_output=pad([[*example.target, EOS] for example in examples]),
        indices=torch.tensor([example.number for example in examples]),
        context=context_sentences([example.earlier for example in examples], always=always_context),
    )


def context_sentences(earlier: Sequence[Sequence[TokenizedPair]], *, always: bool = False) -> ContextSentences | None:
    """The context of a batch from the earlier pairs of each of its sentences; None if there are no earlier pairs.

    With `always`, the result is then a single empty pair that no sentence reads, so that every process of a
    distributed run computes the same parts of the model.
    """
    keys = [[(tuple(source), tuple(target)) for source, target in pairs] for pairs in earlier]
    # Neighbors in a batch often share their context: each pair is encoded once, in the row of its first occurrence.
    row_of = {pair: row for row, pair in enumerate(dict.fromkeys(pair for pairs in keys for pair in pairs))}
    if not row_of and not always:
        return None
    row_of = row_of or {((), ()): 0}
    most = max(1, *map(len, keys))
    source, source_mask = pad_source([source for source, _ in row_of])
    target_input = pad([[BOS, *target] for _, target in row_of])
    # Padding comes first, so that the last column is the sentence just before, however many precede it.
    rows = [[*[-1] * (most - len(pairs)), *(row_of[pair] for pair in pairs)] for pairs in keys]
    return ContextSentences(
        source=source,
        source_mask=source_mask,
        target_input=target_input,
        target_mask=target_input != PAD,
        rows=torch.tensor(rows),
    )


def separated(batch: Batch) -> list[Example]:
    """The examples of a batch, without their earlier sentences: the inverse of `collate`."""
    # The last token of a row is EOS on both sides.
    sources, targets = (
        [[token for token in row if token != PAD][:-1] for row in side.tolist()]
        for side in (batch.source, batch.target_output)
    )
    return [Example(*parts) for parts in zip(batch.indices.tolist(), sources, targets, strict=True)]


def pad_source(ids: Sequence[Sequence[int]]) -> tuple[Int[Tensor, "batch source"], Bool[Tensor, "batch source"]]:
    """Appends EOS to the source sentences and pads them. Also returns their mask, which is True at pieces and EOS.

    Raises ValueError if there are no sentences.
    """
    source = pad([[*row, EOS] for row in ids])
    return source, source != PAD


def pad(rows: Sequence[Sequence[int]]) -> Int[Tensor, "batch length"]:
    """Pads rows of ids to the length of the longest. Raises ValueError if there are none."""
    if not rows:
        raise ValueError("A batch needs at least one sentence.")
    longest = max(map(len, rows))
    return torch.tensor([[*row, *[PAD] * (longest - len(row))] for row in rows], dtype=torch.long)
