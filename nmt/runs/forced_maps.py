"""Attention maps of sentence pairs by forced decoding: one recorded forward pass over (source, target)."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import torch

from nmt.maps.attention_map import SentenceMaps
from nmt.maps.recorder import Recorder
from nmt.runs.forced_scores import readable_batches
from nmt.runs.load import Trained


class IdPair(NamedTuple):
    """A source line and one of its targets, as ids without BOS and EOS."""

    line: int
    """From 1."""
    rank: int
    """1 for the given or best translation, 2 for the second best, ..."""
    source: Sequence[int]
    target: Sequence[int]
    score: float | None = None
    """The score in the search that found the target."""


MakeMaps = Callable[[Trained, Sequence[IdPair], int], Iterator[SentenceMaps]]
"""make_maps(trained, pairs, batch_tokens) yields the maps of each pair, in any order; some may have none."""


def first_ranked(sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[IdPair]:
    """The pairs of lines with one target each."""
    return [IdPair(line, 1, *pair) for line, pair in enumerate(zip(sources, targets, strict=True), start=1)]


def forced_maps(trained: Trained, pairs: Sequence[IdPair], batch_tokens: int) -> Iterator[SentenceMaps]:
    """The maps of each pair, long pairs first; a pair with an empty side, or too long for the model, has none."""
    pairs = [pair for pair in pairs if pair.source and pair.target]
    sides = [pair.source for pair in pairs], [pair.target for pair in pairs]
    for indices, batch in readable_batches([trained], *sides, batch_tokens):
        recorder = Recorder()
        with torch.inference_mode():
            inputs = (batch.source, batch.source_mask, batch.target_input)
            trained.model(*(tensor.to(trained.device) for tensor in inputs), watch=recorder)
        for row, index in enumerate(indices):
            source, target = (
                tokenizer.pieces(side[index]) for tokenizer, side in zip(trained.tokenizers, sides, strict=True)
            )
            maps = recorder.sentence(row, source, target)
            pair = pairs[index]
            yield SentenceMaps(pair.line, pair.rank, source, target, maps, pair.score)
