"""Forced decoding: batches of given sentence pairs, and the log-probability of each given target piece."""

import logging
import math
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor

from nmt.data.batch import Batch, collate
from nmt.data.example import Example, TokenizedPair
from nmt.decoding.translator import batches_by_length
from nmt.errors import CheckFailed
from nmt.runs.load import LoadedRun
from nmt.runs.memory import OutOfMemory, on_out_of_memory
from nmt.text import PAD

logger = logging.getLogger(__name__)


def readable_batches(
    runs: Sequence[LoadedRun],
    sources: Sequence[Sequence[int]],
    targets: Sequence[Sequence[int]],
    batch_tokens: int,
    earlier: Sequence[Sequence[TokenizedPair]] | None = None,
) -> Iterator[tuple[list[int], Batch]]:
    """Batches of pairs of similar length, each with the indices of its pairs. Pairs are ids without BOS and EOS.

    Pairs that are too long for one of the models, or whose earlier pairs are, are left out: a location scorer has
    weights for a limited number of pieces, including EOS. `earlier` lists, for each pair, the pairs before it that the
    runs read; without it, each pair is read by itself.
    """
    limits = [
        min(run.model.max_source or math.inf for run in runs),
        min(run.model.max_target or math.inf for run in runs),
    ]
    context_window = runs[0].context_window
    every = zip(sources, targets, [()] * len(sources) if earlier is None else earlier, strict=True)
    examples = [context_window(Example(index, *parts)) for index, parts in enumerate(every)]

    def readable(example: Example) -> bool:
        read = [(example.source, example.target), *map(context_window.sides_read, example.earlier)]
        return all(len(side) < limit for sides in read for side, limit in zip(sides, limits, strict=False))

    lengths = [max(example.lengths) if readable(example) else 0 for example in examples]
    for indices in batches_by_length(lengths, batch_tokens):
        yield indices, collate([examples[index] for index in indices])


def within_memory(batch: Batch, doing: str) -> AbstractContextManager[None]:
    """Raises OutOfMemory if the memory is full inside the block, in which the model reads the batch."""
    longest = max(batch.source.shape[1], batch.target_input.shape[1])
    explained = partial(
        OutOfMemory,
        f"Out of memory while {doing} a batch of {len(batch.source):,} pairs of up to {longest:,} pieces: lower "
        "batch_tokens, or leave out the longest pairs.",
    )
    return on_out_of_memory(explained)


def log_probs_of_ids(
    runs: Sequence[LoadedRun],
    sources: Sequence[Sequence[int]],
    targets: Sequence[Sequence[int]],
    batch_tokens: int,
    earlier: Sequence[Sequence[TokenizedPair]] | None = None,
) -> list[float]:
    """log P(target | source) of each pair of ids, without BOS and EOS, in nats; several runs form an ensemble.

    `earlier` lists, for each pair, the pairs before it that the runs read; without it, each pair is read by itself.
    A pair that is too long for the model gets NaN, with a warning. Raises CheckFailed if the model computes NaN, and
    OutOfMemory if the memory is full.
    """
    log_probs = [math.nan] * len(sources)
    for indices, batch in readable_batches(runs, sources, targets, batch_tokens, earlier):
        line = max(indices, key=lambda index: max(len(sources[index]), len(targets[index])))
        pieces = max(len(sources[line]), len(targets[line]))
        explained = partial(
            OutOfMemory,
            f"Out of memory while scoring a batch whose longest line, line {line + 1}, has {pieces:,} pieces: shorten "
            "that line, or lower batch_tokens.",
        )
        with on_out_of_memory(explained):
            sums = piece_log_probs(runs, batch).sum(dim=1).tolist()
        for index, value in zip(indices, sums, strict=True):
            if math.isnan(value):
                raise CheckFailed(f"The model's log-probability of line {index + 1} is NaN: check the model's weights.")
            log_probs[index] = value
    unread = [number for number, value in enumerate(log_probs, start=1) if math.isnan(value)]
    if unread:
        logger.warning(
            "%d lines have no log-probability because they are too long for the model; the first is line %d.",
            len(unread),
            unread[0],
        )
    return log_probs


@torch.inference_mode()
def piece_log_probs(runs: Sequence[LoadedRun], batch: Batch) -> Float[Tensor, "batch target"]:
    """log p of each target piece, 0 at padding; for several runs, the log of their mean probability."""
    chosen = []
    for run in runs:
        on_device = batch.to(run.device)
        inputs = on_device.source, on_device.source_mask, on_device.target_input
        log_probs = run.model(*inputs, context=on_device.context).float().log_softmax(dim=-1)
        target = on_device.target_output
        chosen.append(log_probs.gather(2, target.unsqueeze(2)).squeeze(2).double().cpu())
    mean = torch.stack(chosen).logsumexp(dim=0) - math.log(len(runs))
    return mean.masked_fill(batch.target_output == PAD, 0)


def readable_log_probs(
    runs: Sequence[LoadedRun], sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
) -> dict[int, list[float]]:
    """log p of each target piece and of EOS, in nats, by the index of the pair; without the pairs that are too long."""
    log_probs: dict[int, list[float]] = {}
    for indices, batch in readable_batches(runs, sources, targets, batch_tokens=4096):
        for index, row in zip(indices, piece_log_probs(runs, batch).tolist(), strict=True):
            log_probs[index] = row[: len(targets[index]) + 1]
    return log_probs


def forced_log_probs(
    runs: Sequence[LoadedRun], sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
) -> list[list[float]]:
    """log p of each target piece and of EOS, in nats, for pairs that the runs can read."""
    log_probs = readable_log_probs(runs, sources, targets)
    return [log_probs[index] for index in range(len(sources))]
