import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from nmt.attention import scorers
from nmt.errors import Mistake

BATCH, HEADS, QUERIES, KEYS, DIM, HIDDEN = 2, 3, 4, 5, 6, 7
Vectors = tuple[Tensor, Tensor]
MakeScorer = Callable[..., scorers.Scorer]


@pytest.fixture
def vectors() -> Vectors:
    torch.manual_seed(1)
    queries = torch.randn(BATCH, HEADS, QUERIES, DIM, dtype=torch.float64, requires_grad=True)
    return queries, torch.randn(BATCH, HEADS, KEYS, DIM, dtype=torch.float64, requires_grad=True)


def score_of(scorer: scorers.Scorer, queries: Tensor, keys: Tensor) -> Tensor:
    return scorer.score(scorer.project_queries(queries), scorer.project_keys(keys))


FORMULAS = {
    "additive": lambda s, q, k, head, i: s.vector[head] @ torch.tanh(q @ s.query_weight[head] + k @ s.key_weight[head]),
    "concat": lambda s, q, k, head, i: s.vector[head] @ torch.tanh(torch.cat([q, k]) @ s.weight[head]),
    "dot": lambda s, q, k, head, i: q @ k,
    "gaussian": lambda s, q, k, head, i: -(q - k).square().sum() / 2,
    "gaussian_learned": lambda s, q, k, head, i: -((q - k) * s.width[head]).square().sum() / 2,
    "general": lambda s, q, k, head, i: q @ s.weight[head].T @ k,
    "location": lambda s, q, k, head, i: s.weight[head, i] @ q,
    "none": lambda s, q, k, head, i: torch.zeros((), dtype=q.dtype),
    "scaled_dot": lambda s, q, k, head, i: q @ k / math.sqrt(DIM),
}
"""The papers' equations for one query and key i of one head; a row for each configuration of a scorer."""


@pytest.mark.parametrize("num_heads", [1, 2])
@pytest.mark.parametrize("autocast", [False, True])
def test_projecting_allocates_no_matrix_per_sentence(
    scorer_name: str, make_scorer: MakeScorer, num_heads: int, autocast: bool, largest_made: Callable[[], Any]
):
    """A recurrent decoder projects one query per sentence at every step; such gradients took most of its time."""
    torch.manual_seed(1)
    scorer = make_scorer(query_dim=16, key_dim=16, num_heads=num_heads)
    inputs = torch.randn(64, num_heads, 1, 16, requires_grad=True)
    needed = 2 * inputs.numel() + sum(parameter.numel() for parameter in scorer.parameters())
    with largest_made() as largest:
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            projected = scorer.project_queries(inputs).sum() + scorer.project_keys(inputs).sum()
        projected.backward()
    assert 0 < largest.numbers <= needed


def test_weights_and_gradients_equal_the_formula_in_plain_loops(
    scorer_name: str, make_scorer: MakeScorer, vectors: Vectors
):
    """Weights, not scores, because a scorer may leave out a term that is the same for all keys of a query."""
    scorer, formula = make_scorer(query_dim=DIM, key_dim=DIM, num_heads=HEADS).double(), FORMULAS[scorer_name]
    inputs = [*vectors, *scorer.parameters()]
    scores = torch.zeros(BATCH, HEADS, QUERIES, KEYS, dtype=torch.float64)
    for b in range(BATCH):
        for h in range(HEADS):
            for i in range(QUERIES):
                for j in range(KEYS):
                    scores[b, h, i, j] = formula(scorer, vectors[0][b, h, i], vectors[1][b, h, j], h, j)
    slow, fast = scores.softmax(dim=-1), score_of(scorer, *vectors).softmax(dim=-1)
    torch.testing.assert_close(fast, slow, rtol=0, atol=1e-9)
    assert scorer_name == "none" or not torch.allclose(fast, fast[:, :, :1].expand_as(fast), atol=1e-3)
    direction = torch.randn_like(fast)
    found = torch.autograd.grad(fast, inputs, direction)
    needed = slow.requires_grad and torch.autograd.grad(slow, inputs, direction, materialize_grads=True)
    for a, b in zip(found, needed or map(torch.zeros_like, inputs), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-9)


def test_unequal_widths_are_scored_or_refused_naming_both(make_scorer: MakeScorer):
    try:
        scorer = make_scorer(query_dim=3, key_dim=5, num_heads=1)
        found = tuple(score_of(scorer, torch.randn(2, 1, 7, 3), torch.randn(2, 1, 11, 5)).shape)
    except Mistake as refusal:
        found = str(refusal).partition(", but ")[2].partition(" or ")[0]
    assert found in ((2, 1, 7, 11), "queries are 3 wide and keys 5: make the widths equal")


def test_a_scorer_marked_as_inner_product_is_one(make_scorer: MakeScorer, vectors: Vectors):
    scorer = make_scorer(query_dim=DIM, key_dim=DIM, num_heads=HEADS).double()
    queries, keys = scorer.project_queries(vectors[0]), scorer.project_keys(vectors[1])
    if scorer.inner_product:
        torch.testing.assert_close(scorer.score(queries, keys), queries @ scorer.key_vectors(keys).transpose(-2, -1))
    else:
        with pytest.raises((AssertionError, RuntimeError)):
            torch.testing.assert_close(scorer.score(queries, keys), queries @ keys.transpose(-2, -1))


def test_location_refuses_a_sentence_that_is_too_long():
    scorer = scorers.Location(DIM, DIM, HEADS, max_length=5)
    queries, keys = torch.randn(BATCH, HEADS, QUERIES, DIM), torch.randn(BATCH, HEADS, 7, DIM)
    assert score_of(scorer, queries, keys[:, :, :5]).shape == (BATCH, HEADS, QUERIES, 5)
    with pytest.raises(
        Mistake, match=r"has weights for 5 positions, but the sentence has 7; .*larger scorer.max_length"
    ):
        score_of(scorer, queries, keys)


@pytest.mark.parametrize("make", [scorers.Gaussian, scorers.GaussianLearned])
def test_two_columns_keep_a_distance_exact_enough_in_bfloat16(make: MakeScorer):
    """The inner product of bfloat16 vectors, summed in float32 as matrix units do; one column is too coarse."""
    torch.manual_seed(1)
    queries, keys = torch.randn(7, 1, 11, 64).bfloat16(), torch.randn(7, 1, 13, 64).bfloat16()
    scorer = make(64, 64, 1)
    if make is scorers.GaussianLearned:
        scorer.width.data.fill_(1.0)
    projected = scorer.project_queries(queries).float(), scorer.project_keys(keys).float()
    exact = (-(queries.float().unsqueeze(3) - keys.float().unsqueeze(2)).square().sum(dim=-1) / 2).softmax(dim=-1)
    assert (scorer.score(*projected).softmax(dim=-1) - exact).abs().max() < 0.01
    coarse = projected[1].clone()
    coarse[..., 65] = 0  # without the second column
    assert (scorer.score(projected[0], coarse).softmax(dim=-1) - exact).abs().max() > 0.03
    assert projected[0].shape[-1] % 8 == 0


def test_a_distance_stays_exact_where_autocast_rounds_products():
    """As on a GPU in bf16-mixed when a window or normalizer needs the explicit path."""
    torch.manual_seed(1)
    queries, keys = torch.randn(7, 1, 11, 64).bfloat16(), torch.randn(7, 1, 13, 64).bfloat16()
    scorer = scorers.Gaussian(64, 64, 1)
    with torch.autocast("cpu", torch.bfloat16):
        found = score_of(scorer, queries, keys).softmax(dim=-1)
    exact = (-(queries.double().unsqueeze(3) - keys.double().unsqueeze(2)).square().sum(dim=-1) / 2).softmax(dim=-1)
    # |k|^2 / 2 in two bfloat16 columns is off by (eps / 2)^2, and 66 terms are summed in float32. If a score is off by
    # d, a weight is off by at most 2d.
    bfloat16, float32 = (torch.finfo(dtype).eps for dtype in (torch.bfloat16, torch.float32))
    column, largest = keys.double().square().sum(dim=-1).max() / 2, queries.norm(dim=-1).max() * keys.norm(dim=-1).max()
    assert (found - exact).abs().max() < 2 * ((bfloat16 / 2) ** 2 * column + 66 * float32 * (column + largest))


def test_the_learned_width_starts_with_the_scale_of_scaled_dot():
    assert scorers.GaussianLearned(64, 64, 1).width.square().item() == pytest.approx(1 / math.sqrt(64))


def test_without_tanh_every_query_has_the_same_weights(vectors: Vectors):
    """Without tanh the query's term cancels in the softmax; with tanh it does not."""
    scorer = scorers.Additive(DIM, DIM, HEADS, HIDDEN).double()
    q, k = scorer.project_queries(vectors[0]), scorer.project_keys(vectors[1])
    linear = torch.einsum("bhqkd,hd->bhqk", q.unsqueeze(3) + k.unsqueeze(2), scorer.vector).softmax(dim=-1)
    torch.testing.assert_close(linear, linear[:, :, :1].expand_as(linear))
    weights = scorer.score(q, k).softmax(dim=-1)
    assert not torch.allclose(weights, weights[:, :, :1].expand_as(weights), atol=1e-2)
