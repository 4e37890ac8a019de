from itertools import chain

import numpy as np
import pytest

import nmt.data.plan
from nmt.data.plan import Mixing, plan, plan_epoch
from nmt.errors import Mistake


def lengths(number: int, longest: int = 37) -> np.ndarray:
    rng = np.random.default_rng(11)
    source = rng.integers(2, longest, number)
    return np.stack([source, np.clip(source + rng.integers(-3, 7, number), 1, longest)], axis=1)


def flat(steps) -> list[np.ndarray]:
    return [batch for step in steps for rank in step for batch in rank]


@pytest.mark.parametrize(("accumulate", "world"), [(1, 1), (3, 1), (1, 2), (2, 3), (5, 7)])
@pytest.mark.parametrize("number", [131, 1009])
def test_every_sentence_comes_once_and_every_step_is_full(number, accumulate, world):
    steps = plan(3, 2, lengths(number), 101, accumulate, world)
    assert sorted(np.concatenate(flat(steps)).tolist()) == list(range(number))
    assert all(len(step) == world and all(len(rank) == accumulate for rank in step) for step in steps)
    assert all(len(batch) for batch in flat(steps))


def test_no_batch_is_over_the_budget():
    sizes = lengths(1009)
    assert all(len(batch) * sizes[batch].max() <= 101 for batch in flat(plan(3, 2, sizes, 101, 2, 3)))


def test_the_plan_is_a_function_of_its_arguments():
    np.random.default_rng().random()
    first, again = plan(3, 2, lengths(211), 101), plan(3, 2, lengths(211), 101)
    assert [batch.tolist() for batch in flat(first)] == [batch.tolist() for batch in flat(again)]


def test_indices_are_int32_and_in_the_same_order_as_int64():
    assert all(batch.dtype == np.int32 for batch in flat(plan(3, 2, lengths(211), 101)))
    short, long = np.random.default_rng(5), np.random.default_rng(5)
    np.testing.assert_array_equal(short.permutation(np.arange(211, dtype=np.int32)), long.permutation(211))


@pytest.mark.parametrize(("seed", "epoch"), [(4, 2), (3, 1), (2, 3)])
def test_another_seed_or_epoch_is_another_order(seed, epoch):
    first, other = plan(3, 2, lengths(211), 101), plan(seed, epoch, lengths(211), 101)
    assert [batch.tolist() for batch in flat(first)] != [batch.tolist() for batch in flat(other)]


def test_more_processes_take_different_slices_of_the_same_steps():
    one, two, six = (plan(3, 2, lengths(1009), 101, a, w) for a, w in [(6, 1), (3, 2), (1, 6)])
    for steps in zip(one, two, six, strict=True):
        whole = [np.concatenate(list(chain.from_iterable(step))).tolist() for step in steps]
        assert whole[0] == whole[1] == whole[2]


def test_without_mixing_an_epoch_is_its_plan():
    found, expected = plan_epoch(3, 2, lengths(211), 101), plan(3, 2, lengths(211), 101)
    assert [batch.tolist() for batch in flat(found.steps)] == [batch.tolist() for batch in flat(expected)]
    assert set(found.partners.tolist()) == {-1}


def test_partners_are_random_and_the_budget_counts_them():
    sizes, (steps, partners) = lengths(1009), plan_epoch(3, 2, lengths(1009), 101, mixing=Mixing(concat_prob=0.4))
    has = partners >= 0
    joined = np.where(has[:, None], sizes + sizes[partners] - 1, sizes)
    assert 0.1 < has.mean() < 0.4  # pairs that would become too long get no partner
    assert len(set(partners[has].tolist())) > 0.7 * has.sum()
    assert (joined <= sizes.max(axis=0)).all()
    assert (partners[has] != np.flatnonzero(has)).all()
    assert all(len(batch) * joined[batch].max() <= 101 for batch in flat(steps))
    assert sorted(np.concatenate(flat(steps)).tolist()) == list(range(1009))
    assert plan_epoch(3, 3, sizes, 101, mixing=Mixing(concat_prob=0.4)).partners.tolist() != partners.tolist()


def test_joined_pairs_share_one_eos_and_may_be_as_long_as_the_longest():
    sizes = np.array([[9, 9], *[[5, 5]] * 99])  # 5 + 5 - 1 = 9
    steps, partners = plan_epoch(3, 2, sizes, 9, mixing=Mixing(concat_prob=1.0))
    assert (
        partners[1:] >= 0
    ).mean() > 0.9  # a partner is drawn from all pairs, so a few draw the long one or themselves
    assert partners[0] == -1
    assert 0 not in partners
    assert [len(batch) for batch in flat(steps)] == [1] * 100


@pytest.mark.parametrize("temperature", [1.0, 2.0, 100.0, 0.5, 0.01])
def test_corpora_are_drawn_in_the_proportions_of_the_temperature(temperature):
    parts = (900, 90, 19)
    steps, _ = plan_epoch(3, 2, lengths(1009), 101, mixing=Mixing(parts, temperature))
    drawn = np.concatenate(flat(steps))
    shares = (np.array(parts) / max(parts)) ** (1 / temperature)
    expected = 1009 * shares / shares.sum()
    for start, size, count in zip((0, 900, 990), parts, expected, strict=True):
        times = np.bincount(drawn, minlength=1009)[start : start + size]
        # The nearest whole number; a float has some ten roundings of numbers up to 1009.
        assert times.sum() == pytest.approx(count, rel=0, abs=0.5 + 10 * 1009 * np.finfo(float).eps)
        assert times.max() - times.min() <= 1
    assert (sorted(drawn.tolist()) == list(range(1009))) == (temperature == 1)


def test_less_than_a_twentieth_is_padding():
    sizes = lengths(10_007)
    batches = flat(plan(3, 2, sizes, 1009))
    padded = sum(len(batch) * int(sizes[batch].max(axis=0).sum()) for batch in batches)
    assert sizes.sum() / padded > 0.95


def padding_and_meetings(sizes: np.ndarray, batch_tokens: int) -> tuple[float, float]:
    """The share of padding, and of the pairs of sentences in a batch, those that share a batch again an epoch later."""
    first, second = (flat(plan(3, epoch, sizes, batch_tokens)) for epoch in (0, 1))
    padded = sum(len(batch) * int(sizes[batch].max(axis=0).sum()) for batch in first)
    batch_of = np.empty(len(sizes), dtype=int)
    for index, batch in enumerate(second):
        batch_of[batch] = index
    again = sum(int((np.bincount(batch_of[batch]) ** 2).sum()) - len(batch) for batch in first)
    return 1 - sizes.sum() / padded, again / sum(len(batch) ** 2 - len(batch) for batch in first)


@pytest.mark.parametrize(("batches_of_a_pool", "batch_tokens"), [(8, 1009), (256, 211), (256, 61)])
def test_larger_pools_need_less_padding_and_smaller_ones_mix_better(monkeypatch, batches_of_a_pool, batch_tokens):
    sizes = lengths(10_007)
    little, often = padding_and_meetings(sizes, batch_tokens)
    monkeypatch.setattr(nmt.data.plan, "_POOL_BATCHES", batches_of_a_pool)
    much, seldom = padding_and_meetings(sizes, batch_tokens)
    assert 0 < little < 0.7 * much
    assert 0 < seldom < 0.5 * often


def test_a_large_corpus_is_not_sorted_as_a_whole(monkeypatch):
    sizes = lengths(10_007)
    _, seldom = padding_and_meetings(sizes, 61)
    monkeypatch.setattr(nmt.data.plan, "_POOL_BATCHES", 10**9)
    _, often = padding_and_meetings(sizes, 61)
    assert seldom < 0.5 * often


def test_batches_are_not_in_the_order_of_their_length():
    sizes = lengths(10_007)
    longest = [int(sizes[batch].max()) for batch in flat(plan(3, 2, sizes, 1009))]
    assert abs(np.corrcoef(longest, np.arange(len(longest)))[0, 1]) < 0.3


def test_one_sentence_is_one_step():
    assert flat(plan(3, 2, np.array([[5, 7]]), 7))[0].tolist() == [0]


def test_a_batch_has_as_many_rows_as_its_budget_allows():
    batches = flat(plan(3, 2, np.array([[5, 2], [1, 5], [5, 5], [2, 2]]), 10))
    assert sorted(len(batch) for batch in batches) == [2, 2]


def test_a_sentence_over_the_budget_is_refused():
    with pytest.raises(
        Mistake,
        match=r"batch_tokens=6 is less than the length of .*, 7 tokens .* raise batching\.batch_tokens or lower",
    ):
        plan(3, 2, np.array([[5, 7], [2, 3]]), 6)


@pytest.mark.parametrize("number", [0, 3])
def test_too_few_sentences_are_refused(number):
    with pytest.raises(
        Mistake, match=f"{number} sentences in .* cannot fill steps of 5 batches; lower trainer.accumulate_grad_"
    ):
        plan(3, 2, lengths(number), 101, accumulate=5)
