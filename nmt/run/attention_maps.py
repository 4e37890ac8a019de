"""Attention maps of sentence pairs by forced decoding: one watched forward pass over (source, target)."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch

from nmt.evaluation.maps import AttentionMap, Recorder
from nmt.run.build import Trained
from nmt.run.forced import readable_batches


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
    lines = [line for line, pair in enumerate(zip(sources, targets, strict=True)) if all(pair)]
    pairs = [sources[line] for line in lines], [targets[line] for line in lines]
    for indices, batch in readable_batches([trained], *pairs, batch_tokens):
        recorder = Recorder()
        with torch.inference_mode():
            inputs = (batch.source, batch.source_mask, batch.target_input)
            trained.model(*(tensor.to(trained.device) for tensor in inputs), watch=recorder)
        for row, index in enumerate(indices):
            source_pieces, target_pieces = (
                tokenizer.pieces(ids[index]) for tokenizer, ids in zip(tokenizers, pairs, strict=True)
            )
            maps = recorder.sentence(row, source_pieces, target_pieces)
            yield Forced(lines[index], source_pieces, target_pieces, maps)
