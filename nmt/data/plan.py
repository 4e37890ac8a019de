"""Which sentences form which step of an epoch: a pure function of the seed, the epoch and the lengths."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Int

# A sorted pool has about this many batches at most. Larger pools leave less padding; smaller ones bring other sentences
# together in every epoch. docs/speed.md has what both sizes gave.
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

    `lengths` holds the source and the target length of each sentence, EOS counted. Every sentence comes once an epoch,
    or those that are `drawn` by their index come as often as they stand there;
    rows x longest side of a micro-batch is at most `batch_tokens`; every step has `accumulate` micro-batches on each of
    the `world` ranks: the largest batches are halved until their number allows it. The steps depend on
    accumulate x world alone, so another number of processes takes other slices of the same steps.
    Raises ValueError when a sentence is longer than `batch_tokens` or the sentences are too few to fill the steps.
    """
    longest = int(lengths.max(initial=0))
    if longest > batch_tokens:
        raise ValueError(
            f"batch_tokens={batch_tokens} is less than the longest sentence, {longest} tokens with EOS; "
            "raise batch_tokens or filter long sentences out."
        )
    rng = np.random.default_rng((seed, epoch))
    # 4 bytes an index instead of numpy's 8: the batches keep the whole order.
    order = rng.permutation(np.arange(len(lengths), dtype=np.int32) if drawn is None else drawn)
    tokens = int(lengths.max(axis=1)[slice(None) if drawn is None else drawn].sum())
    pools = np.array_split(order, 1 + tokens // (_POOL_BATCHES * batch_tokens))
    batches = [batch for pool in pools for batch in _batches(pool, lengths[pool], batch_tokens)]
    batches = _fill_steps(batches, accumulate * world)
    shuffled = iter(rng.permutation(len(batches)))
    steps = len(batches) // (accumulate * world)
    return [[[batches[next(shuffled)] for _ in range(accumulate)] for _ in range(world)] for _ in range(steps)]


class Epoch(NamedTuple):
    """The steps of an epoch as `plan` gives them, and for each pair the one that is appended to it, or -1."""

    steps: list[list[list[np.ndarray]]]
    partners: Int[np.ndarray, " sentences"]


@dataclass(frozen=True)
class Mixing:
    """How an epoch differs from every pair once: the default is not at all.

    parts: how many pairs each corpus has, one after the other; temperature: a corpus of n pairs comes as often as
    n^(1 / temperature) in an epoch of as many pairs (Arivazhagan et al. 2019, section 4), so that above 1 the small
    ones are repeated and the large ones sampled; concatenate: the share of pairs to which another random one is
    appended (Nguyen et al. 2021), unless a side were longer than the longest one by itself.
    """

    parts: tuple[int, ...] = ()
    temperature: float = 1.0
    concatenate: float = 0.0

    def drawn(self, rng: np.random.Generator) -> Int[np.ndarray, " draws"] | None:
        """Which pairs come, each as often as it stands there; None: every one once."""
        if self.temperature == 1:
            return None
        sizes = np.array(self.parts)
        logs = np.log(np.maximum(sizes, 1)) / self.temperature
        shares = np.where(sizes, np.exp(logs - logs.max()), 0)
        counts = np.rint(sizes.sum() * shares / shares.sum()).astype(int)
        starts = np.cumsum(sizes) - sizes
        found = [
            start + np.concatenate([np.tile(np.arange(size), count // size), rng.permutation(size)[: count % size]])
            for start, size, count in zip(starts, sizes, counts, strict=True)
            if size
        ]
        return np.concatenate(found).astype(np.int32)


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
    """`plan` of an epoch whose pairs are mixed."""
    rng = np.random.default_rng((seed, epoch, 1))
    drawn = mixing.drawn(rng)
    if mixing.concatenate == 0:
        nobody = np.broadcast_to(np.int32(-1), len(lengths))
        return Epoch(plan(seed, epoch, lengths, batch_tokens, accumulate, world, drawn), nobody)
    partners = rng.integers(len(lengths), size=len(lengths), dtype=np.int32)
    joined = lengths + lengths[partners] - 1  # one EOS is left of two
    chosen = (rng.random(len(lengths)) < mixing.concatenate) & (joined <= lengths.max(axis=0)).all(axis=1)
    chosen &= partners != np.arange(len(lengths))
    steps = plan(seed, epoch, np.where(chosen[:, None], joined, lengths), batch_tokens, accumulate, world, drawn)
    return Epoch(steps, np.where(chosen, partners, np.int32(-1)))


def _batches(pool: np.ndarray, lengths: np.ndarray, batch_tokens: int) -> list[np.ndarray]:
    """Cuts a pool, sorted from long to short, into batches of as many rows as the first one's length allows."""
    longest, difference = lengths.max(axis=1), lengths[:, 0] - lengths[:, 1]
    # Among equal longest sides the shorter ones are sorted too, up and down by turns, so that they do not jump between.
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
        raise ValueError(
            f"{sentences} sentences in {len(batches)} batches cannot fill steps of {per_step} batches; "
            "lower the accumulation or the number of processes, or raise batch_tokens."
        )
    while missing := needed - len(batches):
        batches = sorted(batches, key=len, reverse=True)
        halves = [half for batch in batches[:missing] for half in np.array_split(batch, 2) if len(half)]
        batches = halves + batches[missing:]
    return batches
