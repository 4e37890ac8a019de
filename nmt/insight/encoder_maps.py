"""Attention maps of a pretrained encoder, from one recorded forward pass over whole sentences."""

from collections.abc import Iterator, Sequence
from functools import partial

import torch

from nmt.data.batch import pad_source
from nmt.insight.forced_maps import IdPair
from nmt.maps.attention_map import SentenceMaps
from nmt.maps.recorder import Recorder
from nmt.runs.encoder import LoadedEncoder
from nmt.runs.memory import OutOfMemory, on_out_of_memory


def encoder_maps(encoder: LoadedEncoder, pairs: Sequence[IdPair], batch_tokens: int) -> Iterator[SentenceMaps]:
    """The maps of each source at encoder_self, longest sentences first; no piece is masked, and targets are ignored."""
    waiting = sorted(pairs, key=lambda pair: len(pair.source), reverse=True)
    while waiting:
        number = max(1, batch_tokens // (len(waiting[0].source) + 1))
        rows, waiting = waiting[:number], waiting[number:]
        source, mask = pad_source([pair.source for pair in rows])
        recorder = Recorder()
        explained = partial(
            OutOfMemory,
            f"Out of memory while making the maps of {number:,} sentences of up to {source.shape[1]:,} pieces: lower "
            "batch_tokens, or leave out the longest sentences.",
        )
        with on_out_of_memory(explained), torch.inference_mode():
            encoder.model(source.to(encoder.device), mask.to(encoder.device), watch=recorder)
        for row, pair in enumerate(rows):
            pieces = encoder.tokenizers.source.pieces(pair.source)
            yield SentenceMaps(
                line=pair.line,
                rank=pair.rank,
                source_pieces=pieces,
                target_pieces=[],
                maps=recorder.sentence(row, pieces, []),
            )
