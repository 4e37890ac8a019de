"""Sampled segmentations keep the text and depend only on the draw."""

from itertools import islice

import pytest
import torch

from nmt.data.dataset import training_dataset
from nmt.data.drawn_pairs import Draw, DrawnPairs, SubwordSampling
from nmt.data.example import Example
from nmt.data.filters import Filters
from nmt.data.module import StepData
from nmt.data.plan import Mixing

pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
STRENGTH, STEPS = 0.4, 31


@pytest.fixture
def training(corpus, direction, pair, tmp_path):
    return training_dataset([corpus], direction, pair, Filters(), [], tmp_path / "cache")[0]


@pytest.fixture
def drawn(training, pair):
    return lambda seed=3, longest=(99, 99): DrawnPairs(
        training, [SubwordSampling(pair, STRENGTH, seed=seed, longest=longest)]
    )


def test_sampling_keeps_the_text_of_a_pair(training, pair, drawn):
    draws = [Draw(0, index) for index in range(len(training))]
    for found, kept in zip(drawn().__getitems__(draws), training, strict=True):
        assert found.number == kept.number
        assert pair.source.decode(found.source) == pair.source.decode(kept.source)
        assert pair.target.decode(found.target) == pair.target.decode(kept.target)


def test_segmentations_depend_only_on_seed_epoch_and_pair(drawn):
    draws = [Draw(2, index) for index in (5, 11, 7)]
    found = drawn().__getitems__(draws)
    assert [drawn().__getitems__([draw])[0] for draw in draws[::-1]] == found[::-1]
    assert drawn().__getitems__([draw._replace(epoch=3) for draw in draws]) != found
    assert drawn(seed=4).__getitems__(draws) != found


def test_a_side_that_would_become_too_long_keeps_its_usual_segmentation(training, drawn):
    draws = [Draw(0, index) for index in range(len(training))]
    longest = training.lengths.max(axis=0).tolist()
    found = drawn(longest=longest).__getitems__(draws)
    for example in found:
        sides = example.source, example.target
        assert all(len(ids) + 1 <= most for ids, most in zip(sides, longest, strict=True))
    assert found != drawn().__getitems__(draws)
    assert drawn(longest=(1, 1)).__getitems__(draws) == list(training)


def test_a_partner_is_appended_on_both_sides(training, pair, drawn):
    [joined] = DrawnPairs(training).__getitems__([Draw(0, 5, 11)])
    assert joined == Example(5, training[5].source + training[11].source, training[5].target + training[11].target)
    alone = DrawnPairs(training).__getitems__([Draw(0, 7), Draw(0, 5, 11), Draw(0, 11)])
    assert alone == [training[7], joined, training[11]]
    [sampled] = drawn().__getitems__([Draw(0, 5, 11)])
    assert pair.source.decode(sampled.source) == " ".join(pair.source.decode(training[n].source) for n in (5, 11))


@pytest.mark.parametrize("workers", [0, 2])
def test_a_restored_loader_continues_with_the_same_segmentations(training, pair, workers):
    def loader(workers=0):
        sampling = SubwordSampling(pair, STRENGTH, seed=3, longest=(99, 99))
        data = StepData(
            DrawnPairs(training, [sampling], Mixing(concat_prob=0.3)),
            [],
            seed=3,
            batch_tokens=211,
            max_steps=STEPS,
            workers=workers,
        )
        return data.train_dataloader()

    whole, interrupted, resumed = list(loader()), loader(workers), loader(workers)
    assert len({tuple(batch.indices.tolist()) for [batch] in whole}) > 2
    before = list(islice(interrupted, 17))
    resumed.load_state_dict(interrupted.state_dict())
    for [ours], [theirs] in zip([*before, *resumed], whole, strict=True):
        assert all(a is b or torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))
