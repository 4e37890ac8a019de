import contextlib
from functools import partial

import pytest
import torch

from nmt.attention import Attention
from nmt.attention.edits import (
    Edit,
    FrozenQuery,
    Given,
    Off,
    OfHead,
    Scaled,
    Shuffled,
    Tempered,
    Uniform,
    with_parts,
)
from nmt.attention.masks import causal_mask
from nmt.attention.normalizers import Softmax, Sparsemax
from nmt.attention.scorers import Additive, General, ScaledDot
from nmt.attention.windows import Global, LocalP, QueryStates, VisibleKeys

SCORES = torch.randn(2, 3, 5, 5, generator=torch.Generator().manual_seed(3)).double()
MASK = causal_mask(5)


def name(change: object) -> str:
    """The name of a case; the address in a default repr would differ between the processes of pytest-xdist."""
    return f"{type(change).__name__}({', '.join(map(str, vars(change).values()))})"


CHANGES = (Off(), Uniform(), Shuffled(), Given([0.5, 0.25, 0.25]), Scaled([0, 2], 0.0), Scaled([1], 3.0), OfHead(0))


def applied(change, scores=SCORES, mask=MASK, normalizer=None, **edit):
    """The weights of softmax or another normalizer with a change of head 1."""
    weights = (normalizer or Softmax())(scores, mask)
    return Edit(change, **{"head": 1, **edit})(weights, VisibleKeys(mask), torch.arange(scores.shape[2]).unsqueeze(0))


@pytest.mark.parametrize("change", CHANGES, ids=name)
@pytest.mark.parametrize("normalizer", [Softmax, Sparsemax])
def test_only_one_head_changes_and_blocked_keys_keep_the_weight_0(change, normalizer):
    weights, own = applied(change, normalizer=normalizer()), normalizer()(SCORES, MASK)
    assert weights[:, [0, 2]].equal(own[:, [0, 2]])
    assert not weights[:, 1].equal(own[:, 1])
    assert weights.masked_fill(MASK, 0).eq(0).all()


@pytest.mark.parametrize("change", CHANGES, ids=name)
def test_only_the_chosen_steps_of_all_heads_change(change):
    weights, own = applied(change, head=None, steps=[1, 4]), Softmax()(SCORES, MASK)
    assert weights[:, :, [0, 2, 3]].equal(own[:, :, [0, 2, 3]])
    assert not weights[:, :, 4].equal(own[:, :, 4])


def test_off_gives_zeros_and_uniform_gives_the_mean():
    assert applied(Off())[:, 1].eq(0).all()
    torch.testing.assert_close(applied(Uniform())[0, 1], MASK / torch.arange(1, 6).double()[:, None])
    nothing = torch.zeros(5, 5, dtype=torch.bool)
    assert applied(Uniform(), mask=nothing).eq(0).all()


def test_given_weights_that_are_the_own_ones_change_no_bit():
    own = Softmax()(SCORES[:1], MASK)
    for step in range(5):
        row = own[0, 1, step].tolist()
        assert applied(Given(row), SCORES[:1], steps=[step]).equal(own)


@pytest.mark.parametrize("normalizer", [Softmax, Sparsemax])
def test_a_blocked_key_has_no_weight_and_the_others_share_what_it_had(normalizer):
    own, weights = normalizer()(SCORES, MASK), applied(Scaled([0, 2], 0.0), normalizer=normalizer(), head=None)
    assert weights[..., [0, 2]].eq(0).all()
    sums = weights.sum(dim=-1)
    assert sums[:, :, 0].eq(0).all(), "the first query may attend to nothing but the blocked key"
    torch.testing.assert_close(sums[:, :, 1:], torch.ones_like(sums[:, :, 1:]))
    with_weight = own[..., [1, 3, 4]].sum(dim=-1) > 0
    ratios = weights[..., [1, 3, 4]] * own[..., [1, 3, 4]].sum(dim=-1, keepdim=True)
    torch.testing.assert_close(ratios[with_weight], own[..., [1, 3, 4]][with_weight])


def test_the_blocked_key_with_all_the_weight_leaves_it_in_equal_shares():
    scores = torch.tensor([0.0, 10.0, 0.0]).double().view(1, 1, 1, 3)
    weights = applied(Scaled([1], 0.0), scores, torch.ones(3, dtype=torch.bool), Sparsemax(), head=None)
    assert weights.flatten().tolist() == [0.5, 0, 0.5]


def test_a_boosted_key_is_worth_its_factor_beside_the_others():
    weights, own = applied(Scaled([1], 3.0), head=None)[..., 4, :], Softmax()(SCORES, MASK)[..., 4, :]
    torch.testing.assert_close(weights[..., 1] / weights[..., 0], 3 * own[..., 1] / own[..., 0])
    torch.testing.assert_close(weights.sum(dim=-1), torch.ones_like(weights[..., 0]))


def test_a_temperature_divides_the_scores():
    torch.testing.assert_close(Tempered(Softmax(), 2.0)(SCORES, MASK), Softmax()(SCORES / 2, MASK))
    even = Tempered(Softmax(), 1e9)(SCORES, MASK)
    torch.testing.assert_close(even, (MASK / torch.arange(1, 6).double()[:, None]).expand_as(even))


def test_shuffled_weights_are_the_same_weights_on_different_keys():
    weights, own = applied(Shuffled())[:, 1], Softmax()(SCORES, MASK)[:, 1]
    torch.testing.assert_close(weights.sort(dim=-1).values, own.sort(dim=-1).values)
    assert weights[:, 0].equal(own[:, 0]), "of one key there is one order"


def test_a_shuffle_depends_neither_on_padding_nor_on_the_rest_of_the_batch():
    lengths = torch.tensor([3, 5])
    mask = (torch.arange(5) < lengths[:, None])[:, None, None]
    whole, everything = applied(Shuffled(), mask=mask), torch.ones(3, dtype=torch.bool)
    torch.testing.assert_close(whole[:1, :, :, :3], applied(Shuffled(), SCORES[:1, :, :, :3], everything))
    wide = torch.nn.functional.pad(SCORES, (0, 30))
    narrow = applied(Shuffled(), mask=torch.arange(5) < 5)
    torch.testing.assert_close(applied(Shuffled(), wide, torch.arange(35) < 5)[..., :5], narrow)


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
    with contextlib.suppress(KeyError), with_parts(attention, edits=[Edit(Off(), 1)]):
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
    mask, query_states = (
        torch.ones(11, dtype=torch.bool),
        QueryStates(torch.randn(2, 5, 21).double(), torch.arange(5)[None]),
    )
    visible = attention.window(mask, query_states)
    with with_parts(attention, edits=[Edit(Uniform(), 1)]):
        weights = attention.attend(queries, keys, keys, mask, query_states)[1][:, 1]
    equal = (visible.mask / visible.mask.sum(-1, keepdim=True).double())[:, 1]
    torch.testing.assert_close(weights, equal if renormalize else equal * visible.log_prior[:, 1].exp())


def test_a_frozen_query_has_the_precision_of_the_queries():
    attention = Attention(ScaledDot, Global, Softmax, query_dim=7, key_dim=7, num_heads=3)
    queries, keys = torch.randn(2, 3, 5, 7).bfloat16(), torch.randn(2, 3, 5, 7).bfloat16()
    with with_parts(attention, scorer=FrozenQuery(attention.scorer, 0, torch.zeros(7))):
        assert attention(queries, keys, keys, MASK).dtype == torch.bfloat16
