"""The additive score in blocks equals v . tanh(q + k), in value and gradient, and keeps no large tensor."""

import pytest
import torch

from nmt.kernels import additive_score as kernel

HEADS, QUERIES, KEYS, HIDDEN = 3, 4, 5, 7
PAIRS_OF_A_QUERY = HEADS * KEYS * HIDDEN
FLOAT32, BFLOAT16 = (torch.finfo(dtype).eps for dtype in (torch.float32, torch.bfloat16))


@pytest.mark.parametrize("block", [1, 3 * PAIRS_OF_A_QUERY, 2 * QUERIES * PAIRS_OF_A_QUERY, 2**20])
def test_blocks_of_any_size_give_the_plain_formula(block: int, monkeypatch: pytest.MonkeyPatch):
    torch.manual_seed(1)
    queries, keys = torch.randn(11, HEADS, QUERIES, HIDDEN).double(), torch.randn(11, HEADS, KEYS, HIDDEN).double()
    inputs = [queries.requires_grad_(), keys.requires_grad_(), torch.randn(HEADS, HIDDEN).double().requires_grad_()]
    monkeypatch.setitem(kernel.BLOCK, "cpu", block)
    in_blocks = kernel.additive_score(*inputs)
    formula = torch.einsum("bhqkd,hd->bhqk", torch.tanh(queries.unsqueeze(3) + keys.unsqueeze(2)), inputs[2])
    torch.testing.assert_close(in_blocks, formula, rtol=0, atol=1e-9)
    direction = torch.randn_like(formula)
    for a, b in zip(
        torch.autograd.grad(in_blocks, inputs, direction), torch.autograd.grad(formula, inputs, direction), strict=True
    ):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("block", "number"),
    [(1, 11 * QUERIES), (3 * PAIRS_OF_A_QUERY, 22), (2 * QUERIES * PAIRS_OF_A_QUERY, 6), (2**20, 1)],
)
def test_blocks_contain_every_query_once_and_fit_the_limit(block: int, number: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(kernel.BLOCK, "cpu", block)
    queries, keys = torch.zeros(11, HEADS, QUERIES, HIDDEN), torch.zeros(11, HEADS, KEYS, HIDDEN)
    found = list(kernel.blocks(queries, keys))
    times = torch.zeros(11, QUERIES)
    for sentences, steps in found:
        times[sentences, steps] += 1
        assert times[sentences, steps].numel() * PAIRS_OF_A_QUERY <= max(block, PAIRS_OF_A_QUERY)
    assert times.eq(1).all()
    assert len(found) == number


def test_bfloat16_is_computed_in_float32_and_rounded_once():
    """Sums in bfloat16 would be off by many roundings."""
    torch.manual_seed(1)
    hidden = 64
    shapes = ((2, 1, 3, hidden), (2, 1, 5, hidden), (1, hidden))
    inputs = [torch.randn(*shape).bfloat16().requires_grad_() for shape in shapes]
    exact = [x.detach().double().requires_grad_() for x in inputs]
    scores, expected = kernel.additive_score(*inputs), kernel.additive_score(*exact)
    direction = torch.randn(scores.shape).bfloat16()
    found = torch.autograd.grad(scores, inputs, direction)
    wanted = torch.autograd.grad(expected, exact, direction.double())
    # The largest factors of the float32 sums are below 4; none is longer than hidden + 2 * 3 * 5 terms.
    noise = 4 * 4 * (hidden + 30) * FLOAT32
    for rounded, reference in zip([scores, *found], [expected, *wanted], strict=True):
        torch.testing.assert_close(rounded.double(), reference, rtol=BFLOAT16 / 2, atol=noise)


def test_the_gradient_equals_finite_differences():
    inputs = [torch.randn(2, 1, n, 3, dtype=torch.float64, requires_grad=True) for n in (2, 3)]
    vector = torch.randn(1, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(kernel.AdditiveScore.apply, [*inputs, vector])


def test_no_tensor_of_queries_by_keys_by_hidden_is_kept_for_backward():
    kept: list[int] = []
    queries, keys = (torch.randn(2, 1, 11, 13, requires_grad=True) for _ in range(2))
    with torch.autograd.graph.saved_tensors_hooks(lambda x: kept.append(x.numel()) or x, lambda x: x):
        kernel.additive_score(queries, keys, torch.randn(1, 13, requires_grad=True))
    assert kept
    assert max(kept) < 2 * 11 * 11 * 13
