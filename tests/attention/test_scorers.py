import math

import pytest
import torch
from torch import Tensor

from nmt.attention import kernels, scorers

BATCH, HEADS, QUERIES, KEYS, DIM, HIDDEN = 2, 3, 4, 5, 6, 7
Vectors = tuple[Tensor, Tensor]


@pytest.fixture
def vectors() -> Vectors:
    torch.manual_seed(1)
    queries = torch.randn(BATCH, HEADS, QUERIES, DIM, dtype=torch.float64, requires_grad=True)
    return queries, torch.randn(BATCH, HEADS, KEYS, DIM, dtype=torch.float64, requires_grad=True)


def score_of(scorer: scorers.Scorer, queries: Tensor, keys: Tensor) -> Tensor:
    return scorer.score(scorer.project_queries(queries), scorer.project_keys(keys))


def formula(name: str, scorer: scorers.Scorer, q: Tensor, k: Tensor, head: int) -> Tensor:
    """The paper's equation for one query and one key."""
    if name == "Dot":
        return q @ k
    if name == "ScaledDot":
        return q @ k / math.sqrt(DIM)
    if name == "General":
        return q @ scorer.weight[head].T @ k
    if name == "Concat":
        return scorer.vector[head] @ torch.tanh(torch.cat([q, k]) @ scorer.weight[head])
    return scorer.vector[head] @ torch.tanh(q @ scorer.query_weight[head] + k @ scorer.key_weight[head])


@pytest.mark.parametrize("name", ["Dot", "ScaledDot", "General", "Additive", "Concat"])
def test_score_and_gradients_equal_the_formula_in_plain_loops(name: str, vectors: Vectors):
    scorer = getattr(scorers, name)(DIM, DIM, HEADS).double()
    inputs = [*vectors, *scorer.parameters()]
    fast = score_of(scorer, *vectors)
    slow = torch.empty_like(fast)
    for b in range(BATCH):
        for h in range(HEADS):
            for i in range(QUERIES):
                for j in range(KEYS):
                    slow[b, h, i, j] = formula(name, scorer, vectors[0][b, h, i], vectors[1][b, h, j], h)
    torch.testing.assert_close(fast, slow, rtol=0, atol=1e-9)
    direction = torch.randn_like(fast)
    for a, b in zip(
        torch.autograd.grad(fast, inputs, direction), torch.autograd.grad(slow, inputs, direction), strict=True
    ):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", ["General", "Additive", "Concat"])
def test_queries_and_keys_may_differ_in_width(name: str):
    scorer = getattr(scorers, name)(3, 5, 1)
    assert score_of(scorer, torch.randn(2, 1, 7, 3), torch.randn(2, 1, 11, 5)).shape == (2, 1, 7, 11)


@pytest.mark.parametrize("name", ["Dot", "ScaledDot"])
def test_unequal_widths_are_refused_where_they_cannot_work(name: str):
    message = "queries are 3 wide and keys 5: make the widths equal or use scorer=general"
    with pytest.raises(ValueError, match=message):
        getattr(scorers, name)(3, 5, 1)


@pytest.mark.parametrize("name", ["Dot", "ScaledDot", "General"])
def test_an_inner_product_says_so(name: str, vectors: Vectors):
    scorer = getattr(scorers, name)(DIM, DIM, HEADS).double()
    projected = scorer.project_queries(vectors[0]) @ scorer.project_keys(vectors[1]).transpose(-2, -1)
    assert scorer.inner_product
    torch.testing.assert_close(score_of(scorer, *vectors), projected)


def test_additive_gradient_is_the_numerical_one():
    inputs = [torch.randn(2, 1, n, 3, dtype=torch.float64, requires_grad=True) for n in (2, 3)]
    vector = torch.randn(1, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(kernels.AdditiveScore.apply, [*inputs, vector])


def test_additive_keeps_no_tensor_of_queries_by_keys_by_hidden():
    kept: list[int] = []
    queries, keys = (torch.randn(2, 1, 11, 13, requires_grad=True) for _ in range(2))
    with torch.autograd.graph.saved_tensors_hooks(lambda x: kept.append(x.numel()) or x, lambda x: x):
        kernels.additive_score(queries, keys, torch.randn(1, 13, requires_grad=True))
    assert kept
    assert max(kept) < 2 * 11 * 11 * 13


def test_without_tanh_every_query_attends_alike(vectors: Vectors):
    """The trap of definitions, section 2: the query's term cancels in the softmax; with tanh it does not."""
    scorer = scorers.Additive(DIM, DIM, HEADS, HIDDEN).double()
    q, k = scorer.project_queries(vectors[0]), scorer.project_keys(vectors[1])
    linear = torch.einsum("bhqkd,hd->bhqk", q.unsqueeze(3) + k.unsqueeze(2), scorer.vector).softmax(dim=-1)
    torch.testing.assert_close(linear, linear[:, :, :1].expand_as(linear))
    weights = scorer.score(q, k).softmax(dim=-1)
    assert not torch.allclose(weights, weights[:, :, :1].expand_as(weights), atol=1e-2)
