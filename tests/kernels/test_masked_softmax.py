"""The masked softmax equals the plain one over the allowed keys, in value and gradient."""

import pytest
import torch

from nmt.kernels.masked_softmax import masked_softmax

BFLOAT16 = torch.finfo(torch.bfloat16).eps


def test_it_equals_the_softmax_of_the_allowed_scores():
    torch.manual_seed(1)
    scores, mask = torch.randn(7, 11, dtype=torch.float64, requires_grad=True), torch.rand(7, 11) < 0.7
    weights, direction = masked_softmax(scores, mask), torch.randn(7, 11, dtype=torch.float64)
    plain = torch.zeros_like(scores)
    for row in range(7):
        plain[row, mask[row]] = scores[row, mask[row]].softmax(dim=0)
    torch.testing.assert_close(weights, plain)
    found, expected = (torch.autograd.grad(each, scores, direction) for each in (weights, plain))
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("length", [31, 32], ids=["below torch's fast length", "at it"])
def test_bfloat16_differs_from_exact_numbers_only_by_rounding(length: int):
    """d a_i / d s_j = a_i ([i = j] - a_j) (Bridle 1990). Each rounding changes a number by eps / 2 at most."""
    torch.manual_seed(1)
    scores, mask = torch.randn(7, length).bfloat16(), torch.rand(7, length) < 0.8
    mask[0], upstream = False, torch.randn(7, length).bfloat16()
    found, exact = scores.clone().requires_grad_(), scores.double().requires_grad_()
    weights = masked_softmax(found, mask)
    formula = exact.masked_fill(~mask, -1e9).softmax(dim=-1) * mask
    assert weights.dtype == torch.bfloat16
    # Two roundings: of exp(score) or its sum where the CPU keeps them in bfloat16, and of the result.
    torch.testing.assert_close(weights.double(), formula, rtol=BFLOAT16, atol=0)
    weights.backward(upstream)
    formula.backward(upstream.double())
    # Those of the weights, of the sum and of the result, each relative to a_i (|g_i| + sum_j a_j |g_j|).
    a, g = formula.detach(), upstream.double().abs()
    bound = 2 * BFLOAT16 * a * (g + (a * g).sum(dim=-1, keepdim=True))
    assert (found.grad.double() - exact.grad).abs().le(bound).all()


def test_lengths_per_query():
    mask = torch.tensor([[[True, False, False], [True, True, False]]])
    assert masked_softmax(torch.zeros(1, 2, 3), mask).tolist() == [[[1, 0, 0], [0.5, 0.5, 0]]]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("length", [31, 32])
def test_without_gradients_it_is_the_same_formula_and_leaves_the_scores_alone(dtype: torch.dtype, length: int):
    torch.manual_seed(1)
    scores, mask = torch.randn(7, length, dtype=dtype), torch.rand(7, length) < 0.7
    mask[0], given = False, scores.clone()
    with torch.no_grad():
        found = masked_softmax(scores, mask)
    formula = scores.double().masked_fill(~mask, -1e9).softmax(dim=-1) * mask
    # The exponential, a sum of `length` terms and a quotient in float32, or the two roundings of bfloat16.
    rounding = (length + 4) * torch.finfo(torch.float32).eps if dtype == torch.float32 else BFLOAT16
    torch.testing.assert_close(found.double(), formula, rtol=rounding, atol=0)
    assert found.dtype == dtype
    assert torch.equal(scores, given)
