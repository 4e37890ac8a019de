import contextlib
from functools import partial

import pytest
import torch

from nmt.attention import Attention
from nmt.attention.ablation import FrozenQuery, Off, Shuffled, Uniform, with_parts
from nmt.attention.masks import causal_mask
from nmt.attention.normalizers import Softmax, Sparsemax
from nmt.attention.scorers import Additive, General, ScaledDot
from nmt.attention.windows import Asking, Global, LocalP

SCORES = torch.randn(2, 3, 5, 5, generator=torch.Generator().manual_seed(3)).double()
MASK = causal_mask(5)
WAYS = (Off, Uniform, Shuffled)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("normalizer", [Softmax, Sparsemax])
def test_only_one_head_changes_and_blocked_keys_stay_blocked(way, normalizer):
    weights, own = way(normalizer(), 1)(SCORES, MASK), normalizer()(SCORES, MASK)
    assert weights[:, [0, 2]].equal(own[:, [0, 2]])
    assert not weights[:, 1].equal(own[:, 1])
    assert weights.masked_fill(MASK, 0).eq(0).all()


def test_off_gives_zeros_and_uniform_gives_the_mean():
    assert Off(Softmax(), 1)(SCORES, MASK)[:, 1].eq(0).all()
    torch.testing.assert_close(Uniform(Softmax(), 1)(SCORES, MASK)[0, 1], MASK / torch.arange(1, 6).double()[:, None])
    nothing = torch.zeros(5, 5, dtype=torch.bool)
    assert Uniform(Softmax(), 1)(SCORES, nothing).eq(0).all()


def test_shuffled_weights_are_the_same_weights_on_different_keys():
    weights, own = Shuffled(Softmax(), 1)(SCORES, MASK)[:, 1], Softmax()(SCORES, MASK)[:, 1]
    torch.testing.assert_close(weights.sort(dim=-1).values, own.sort(dim=-1).values)
    assert weights[:, 0].equal(own[:, 0]), "of one key there is one order"


def test_a_shuffle_depends_neither_on_padding_nor_on_the_rest_of_the_batch():
    shuffled = Shuffled(Softmax(), 1)
    lengths = torch.tensor([3, 5])
    mask = (torch.arange(5) < lengths[:, None])[:, None, None]
    whole = shuffled(SCORES, mask)
    torch.testing.assert_close(whole[:1, :, :, :3], shuffled(SCORES[:1, :, :, :3], torch.ones(3, dtype=torch.bool)))
    wide = torch.nn.functional.pad(SCORES, (0, 30))
    torch.testing.assert_close(shuffled(wide, torch.arange(35) < 5)[..., :5], shuffled(SCORES, torch.arange(5) < 5))


@pytest.mark.parametrize("scorer", [ScaledDot, General, Additive])
def test_a_frozen_query_is_the_same_at_every_position(scorer):
    own = scorer(query_dim=7, key_dim=7, num_heads=3).double()
    frozen = FrozenQuery(own, 2, torch.randn(7).double())
    queries, keys = torch.randn(2, 3, 5, 7).double(), torch.randn(2, 3, 4, 7).double()
    scores = frozen.score(frozen.project_queries(queries), frozen.project_keys(keys))
    expected = own.score(own.project_queries(queries), own.project_keys(keys))
    assert scores[:, :2].equal(expected[:, :2])
    torch.testing.assert_close(scores[:, 2], scores[:, 2, :1].expand(-1, 5, -1))
    same = own.score(own.project_queries(frozen.query.expand(2, 3, 1, 7)), own.project_keys(keys))
    torch.testing.assert_close(scores[:, 2, :1], same[:, 2])
    assert (frozen.max_keys, frozen.inner_product) == (own.max_keys, own.inner_product)


def test_an_attention_is_restored_afterwards_even_after_an_error():
    attention = Attention(ScaledDot, Global, Softmax, query_dim=7, key_dim=7, num_heads=3).double()
    queries, keys = torch.randn(2, 3, 5, 7).double(), torch.randn(2, 3, 5, 7).double()
    before = attention(queries, keys, keys, MASK)
    with contextlib.suppress(KeyError), with_parts(attention, normalizer=Off(attention.normalizer, 1)):
        assert attention(queries, keys, keys, MASK)[:, 1].eq(0).all()
        raise KeyError
    assert attention(queries, keys, keys, MASK).equal(before)
    with with_parts(attention, scorer=FrozenQuery(attention.scorer, 0, torch.zeros(7).double())):
        uniform = attention(queries, keys, keys, torch.ones(5, dtype=torch.bool))[:, 0]
    torch.testing.assert_close(uniform, keys[:, 0].mean(dim=1, keepdim=True).expand(-1, 5, -1))


@pytest.mark.parametrize("renormalize", [False, True])
def test_the_gaussian_remains_only_if_it_is_not_part_of_the_scores(renormalize):
    window = partial(LocalP, half_width=2, renormalize=renormalize)
    attention = Attention(ScaledDot, window, Softmax, query_dim=7, key_dim=7, num_heads=3).double()
    queries, keys = torch.randn(2, 3, 5, 7).double(), torch.randn(2, 3, 11, 7).double()
    mask, asking = torch.ones(11, dtype=torch.bool), Asking(torch.randn(2, 5, 21).double(), torch.arange(5)[None])
    view = attention.window(mask, asking)
    with with_parts(attention, normalizer=Uniform(attention.normalizer, 1)):
        weights = attention.attend(queries, keys, keys, mask, asking)[1][:, 1]
    equal = (view.mask / view.mask.sum(-1, keepdim=True).double())[:, 1]
    torch.testing.assert_close(weights, equal if renormalize else equal * view.log_prior[:, 1].exp())
