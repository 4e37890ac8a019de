"""Plans which sentences each training step reads, as a pure function of the seed, the epoch and the lengths."""

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from jaxtyping import Int

from nmt.errors import Mistake

# Sentences are sorted by length in pools of about this many batches at most. Larger pools need less padding; smaller
# pools mix the sentences better between epochs.
_POOL_BATCHES = 1024


def plan(
    seed: int,
    epoch: int,
    lengths: Int[np.ndarray, "sentences 2"],
    batch_tokens: int,
    accumulate: int = 1,
    world: int = 1,
    drawn: Int[np.ndarray, " draws"] | None = None,
) -> list[list[list[np.ndarray]]]:
    """The steps of an epoch: plan(...)[step][rank][micro_batch] is an array of sentence indices.

    `lengths` holds the source and target length of each sentence, including EOS. Without `drawn`, an epoch contains
    every sentence once. Otherwise `drawn` lists the sentence indices of the epoch, with repetitions.
    In each micro-batch, rows x longest side is at most `batch_tokens`. Every step has `accumulate` micro-batches on
    each of `world` ranks; the largest batches are halved until all steps are full. The steps depend only on the product
    accumulate x world, so a different number of processes divides the same steps differently.
    Raises Mistake if a sentence is longer than `batch_tokens` or there are too few sentences to fill the steps.
    """
    longest = int(lengths.max(initial=0))
    if longest > batch_tokens:
        raise Mistake(
            f"batch_tokens={batch_tokens} is less than the length of the longest sentence, {longest} tokens with EOS; "
            "raise batching.batch_tokens or lower filters.max_tokens."
        )
    rng = np.random.default_rng((seed, epoch))
    # int32 instead of numpy's default int64, because the batches keep the whole order in memory.
    order = rng.permutation(np.arange(len(lengths), dtype=np.int32) if drawn is None else drawn)
    tokens = int(lengths.max(axis=1)[slice(None) if drawn is None else drawn].sum())
    pools = np.array_split(order, 1 + tokens // (_POOL_BATCHES * batch_tokens))
    batches = [batch for pool in pools for batch in _batches(pool, lengths[pool], batch_tokens)]
    batches = _fill_steps(batches, accumulate * world)
    shuffled = iter(rng.permutation(len(batches)))
    steps = len(batches) // (accumulate * world)
    return [[[batches[next(shuffled)] for _ in range(accumulate)] for _ in range(world)] for _ in range(steps)]


class Epoch(NamedTuple):
    """The steps of an epoch (see `plan`), and for each pair the index of the pair appended to it, or -1."""

    steps: list[list[list[np.ndarray]]]
    partners: Int[np.ndarray, " sentences"]


@dataclass(frozen=True)
class Mixing:
    """How pairs are drawn for an epoch; by default every pair once.

    parts: number of pairs of each corpus, in order; temperature: a corpus of n pairs is drawn in proportion to
    n^(1 / temperature), with the size of the epoch unchanged (Arivazhagan et al. 2019, section 4), so a temperature
    above 1 repeats small corpora and subsamples large ones; concat_prob: probability that another random pair is
    appended to a pair (Nguyen et al. 2021), unless a side would become longer than in any single pair.
    """

    parts: tuple[int, ...] = ()
    temperature: float = 1.0
    concat_prob: float = 0.0

    def drawn(self, rng: np.random.Generator) -> Int[np.ndarray, " draws"] | None:
        """The indices of the pairs in an epoch, with repetitions; None if every pair is drawn once."""
        if self.temperature == 1:
            return None
        sizes = np.array(self.parts)
        # By logarithms relative to the largest, because n^(1 / temperature) overflows at low temperatures.
        logs = np.log(np.maximum(sizes, 1)) / self.temperature
        shares = np.where(sizes, np.exp(logs - logs.max()), 0)
        counts = np.rint(sizes.sum() * shares / shares.sum()).astype(int)
        starts = np.cumsum(sizes) - sizes
        # Whole copies of a corpus, then a random part of it for the remainder.
        indices = [
            start + np.concatenate([np.tile(np.arange(size), count // size), rng.permutation(size)[: count % size]])
            for start, size, count in zip(starts, sizes, counts, strict=True)
            if size
        ]
        return np.concatenate(indices).astype(np.int32)


EVERY_PAIR_ONCE = Mixing()


def plan_epoch(
    seed: int,
    epoch: int,
    lengths: Int[np.ndarray, "sentences 2"],
    batch_tokens: int,
    accumulate: int = 1,
    world: int = 1,
    mixing: Mixing = EVERY_PAIR_ONCE,
) -> Epoch:
    """Plans an epoch whose pairs and partners are drawn as `mixing` says. Raises whatever `plan` raises."""
    # The third number makes these draws independent of those that `plan` makes for the same seed and epoch.
    rng = np.random.default_rng((seed, epoch, 1))
    drawn = mixing.drawn(rng)
    planned = partial(plan, seed, epoch, batch_tokens=batch_tokens, accumulate=accumulate, world=world, drawn=drawn)
    if mixing.concat_prob == 0:
        return Epoch(planned(lengths), partners=np.broadcast_to(np.int32(-1), len(lengths)))
    partners = rng.integers(len(lengths), size=len(lengths), dtype=np.int32)
    joined = lengths + lengths[partners] - 1  # the two pairs share one EOS
    chosen = (rng.random(len(lengths)) < mixing.concat_prob) & (joined <= lengths.max(axis=0)).all(axis=1)
    chosen &= partners != np.arange(len(lengths))
    steps = planned(np.where(chosen[:, None], joined, lengths))
    return Epoch(steps, np.where(chosen, partners, np.int32(-1)))


def _batches(pool: np.ndarray, lengths: np.ndarray, batch_tokens: int) -> list[np.ndarray]:
    """Sorts a pool from long to short and cuts it into batches with as many rows as their longest sentence allows."""
    longest, difference = lengths.max(axis=1), lengths[:, 0] - lengths[:, 1]
    # Sort the shorter sides too, alternately up and down, so that they do not jump where the longer side changes.
    by_length = np.lexsort((np.where(longest % 2, difference, -difference), -longest))
    pool, longest = pool[by_length], longest[by_length]
    batches, start = [], 0
    while start < len(pool):
        end = start + batch_tokens // int(longest[start])
        batches.append(pool[start:end])
        start = end
    return batches


def _fill_steps(batches: list[np.ndarray], per_step: int) -> list[np.ndarray]:
    sentences, needed = sum(map(len, batches)), max(1, -(-len(batches) // per_step)) * per_step
    if sentences < needed:
        raise Mistake(
            f"{sentences} sentences in {len(batches)} batches cannot fill steps of {per_step} batches; "
            "lower trainer.accumulate_grad_batches or the number of processes, or add training pairs."
        )
    # Again and again, because one round of halving can at most double the number of batches.
    while missing := needed - len(batches):
        batches = sorted(batches, key=len, reverse=True)
        # The second half of a single sentence is empty.
        halves = [half for batch in batches[:missing] for half in np.array_split(batch, 2) if len(half)]
        batches = halves + batches[missing:]
    return batches
