"""Attention maps of sentence pairs by forced decoding: one watched forward pass over (source, target)."""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch

from nmt.data.batch import collate
from nmt.decoding.translator import batches_by_length
from nmt.evaluation.maps import AttentionMap, Recorder
from nmt.run.build import Trained


class Forced(NamedTuple):
    """A sentence pair as pieces, and its maps at every site."""

    line: int
    """Its number in the input, from 0."""
    source_pieces: list[str]
    target_pieces: list[str]
    maps: list[AttentionMap]

    def site(self, name: str) -> AttentionMap:
        """The map of a site, such as 'cross'. Raises ValueError when the model has no such site."""
        found = [item for item in self.maps if item.site == name]
        if not found:
            raise ValueError(
                f"The model shows no attention at '{name}', only at {', '.join(m.site for m in self.maps)}."
            )
        return found[0]


def forced_maps(
    trained: Trained, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]], batch_tokens: int
) -> Iterator[Forced]:
    """The maps of each pair of ids (no BOS or EOS), by length and not in order.

    A pair with a side that is empty, or longer than the model can read, has none.
    """
    tokenizers = trained.tokenizers
    pairs = list(zip(sources, targets, strict=True))
    most = [trained.model.max_source or math.inf, trained.model.max_target or math.inf]
    lengths = [
        max(map(len, pair)) + 1 if all(0 < len(side) < limit for side, limit in zip(pair, most, strict=True)) else 0
        for pair in pairs
    ]
    for indices in batches_by_length(lengths, batch_tokens):
        batch = collate([(index, *pairs[index]) for index in indices])
        recorder = Recorder()
        with torch.inference_mode():
            inputs = (batch.source, batch.source_mask, batch.target_input)
            trained.model(*(tensor.to(trained.device) for tensor in inputs), watch=recorder)
        for row, index in enumerate(indices):
            source_pieces = tokenizers.source.pieces(pairs[index][0])
            target_pieces = tokenizers.target.pieces(pairs[index][1])
            yield Forced(index, source_pieces, target_pieces, recorder.sentence(row, source_pieces, target_pieces))
