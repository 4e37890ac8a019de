"""Attention maps of sentence pairs, from forced decoding: one recorded forward pass over (source, target)."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import torch

from nmt.data.example import Example, TokenizedPair
from nmt.maps.attention_map import EarlierPair, SentenceMaps
from nmt.maps.recorder import Recorder
from nmt.runs.forced_batches import readable_batches, within_memory
from nmt.runs.load import LoadedRun


class IdPair(NamedTuple):
    """A source line and one of its targets, as ids without BOS and EOS."""

    line: int
    """Counted from 1."""
    rank: int
    """1 for the given or best translation, 2 for the second best, ..."""
    source: Sequence[int]
    target: Sequence[int]
    score: float | None = None
    """The score of the target in the search that found it."""
    earlier: Sequence[TokenizedPair] = ()
    """The earlier pairs of the same document that the run reads."""


MakeMaps = Callable[[LoadedRun, Sequence[IdPair], int], Iterator[SentenceMaps]]
"""make_maps(run, pairs, batch_tokens) yields the maps of each pair, in any order; some pairs may have none."""


def first_ranked(
    sources: Sequence[Sequence[int]],
    targets: Sequence[Sequence[int]],
    earlier: Sequence[Sequence[TokenizedPair]] | None = None,
) -> list[IdPair]:
    """Pairs each line with its only target, which has rank 1, and with the earlier pairs that the run reads, if any."""
    every = zip(sources, targets, [()] * len(sources) if earlier is None else earlier, strict=True)
    return [IdPair(line, 1, source, target, None, before) for line, (source, target, before) in enumerate(every, 1)]


def forced_maps(run: LoadedRun, pairs: Sequence[IdPair], batch_tokens: int) -> Iterator[SentenceMaps]:
    """The maps of each pair, longest first; a pair that has an empty side or is too long for the model has none."""
    pairs = [pair for pair in pairs if pair.source and pair.target]
    examples = [
        run.context_window(Example(index, pair.source, pair.target, pair.earlier)) for index, pair in enumerate(pairs)
    ]
    sides = [[getattr(example, name) for example in examples] for name in ("source", "target", "earlier")]
    pieces = [tokenizer.pieces for tokenizer in run.tokenizers]
    for indices, batch in readable_batches([run], sides[0], sides[1], batch_tokens, sides[2]):
        recorder = Recorder()
        with within_memory(batch, "making the maps of"), torch.inference_mode():
            on_device = batch.to(run.device)
            inputs = on_device.source, on_device.source_mask, on_device.target_input
            run.model(*inputs, watch=recorder, context=on_device.context)
        for row, index in enumerate(indices):
            pair, example = pairs[index], examples[index]
            source, target = pieces[0](example.source), pieces[1](example.target)
            earlier = [
                EarlierPair(pieces[0](source_ids), pieces[1](target_ids)) for source_ids, target_ids in example.earlier
            ]
            yield SentenceMaps(
                line=pair.line,
                rank=pair.rank,
                source_pieces=source,
                target_pieces=target,
                maps=recorder.sentence(row, source, target, earlier),
                score=pair.score,
                earlier=earlier,
            )
