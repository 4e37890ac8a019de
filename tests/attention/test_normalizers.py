import pytest
import torch
from torch import Tensor

from nmt.attention import lengths_to_mask, masked_softmax
from nmt.attention.normalizers import Normalizer, Softmax, Sparsemax


@pytest.fixture(params=[Softmax, Sparsemax])
def normalizer(request: pytest.FixtureRequest) -> Normalizer:
    made: Normalizer = request.param()
    return made


def test_blocked_keys_get_exactly_zero_and_rows_sum_to_one():
    scores = torch.randn(2, 2, 4).double()
    weights = masked_softmax(scores, lengths_to_mask(torch.tensor([2, 3]), 4)[:, None, :])
    assert weights[0, :, 2:].eq(0).all()
    assert weights[1, :, 3:].eq(0).all()
    assert weights[0, :, :2].gt(0).all()
    torch.testing.assert_close(weights.sum(dim=-1), torch.ones(2, 2).double())


def test_the_values_of_blocked_scores_change_nothing(normalizer: Normalizer):
    mask = torch.tensor([True, False, True])
    scores = torch.randn(1, 1, 3)
    other = scores.clone()
    other[..., 1] = 1e9
    assert normalizer(scores, mask).equal(normalizer(other, mask))


def test_a_row_without_allowed_keys_is_zeros_with_zero_gradient(normalizer: Normalizer):
    scores = torch.tensor([[[0.1, 0.2, 0.3], [0.4, 0.1, 0.7]]], requires_grad=True)
    mask = torch.tensor([[False, False, False], [True, True, False]])
    weights = normalizer(scores, mask)
    assert weights[0, 0].eq(0).all()
    (weights * torch.arange(3.0)).sum().backward()
    assert scores.grad[0, 0].eq(0).all()
    assert scores.grad[0, 1, :2].abs().gt(0).all()


def test_half_precision_stays_finite(normalizer: Normalizer):
    weights = normalizer(torch.zeros(1, 1, 2, dtype=torch.bfloat16), torch.tensor([True, False]))
    assert weights.tolist() == [[[1, 0]]]


def simplex_projection(scores: list[float]) -> list[float]:
    """max(score - tau, 0), with tau found by bisection so that the weights sum to 1."""
    low, high = min(scores) - 1, max(scores)
    for _ in range(200):
        tau = (low + high) / 2
        low, high = (tau, high) if sum(max(s - tau, 0) for s in scores) > 1 else (low, tau)
    return [max(s - high, 0) for s in scores]


def test_sparsemax_is_the_projection_onto_the_simplex():
    """Of the allowed scores (Martins & Astudillo 2016, equation 2), including distant and equal scores."""
    torch.manual_seed(1)
    mask = torch.tensor([True, True, False, True, True])
    rows = torch.cat([torch.randn(20, 5).double() * 2, torch.zeros(1, 5).double(), torch.randn(3, 5).double() * 1e4])
    weights = Sparsemax()(rows, mask)
    for row, found in zip(rows, weights, strict=True):
        expected = torch.tensor(simplex_projection(row[mask].tolist()), dtype=torch.float64)
        torch.testing.assert_close(found[mask], expected, rtol=0, atol=1e-9)
        assert found[2] == 0
    assert weights[:, mask].eq(0).any(), "it gives exact zeros"


def test_the_gradient_equals_the_numerical_one(normalizer: Normalizer):
    scores = torch.tensor([[0.3, 0.1, 5.0, 0.2, -4.0], [0.3, 0.1, 5.0, 0.2, -4.0]], dtype=torch.float64)
    mask = torch.tensor([[True, True, False, True, True], [False] * 5])

    def normalise(x: Tensor) -> Tensor:
        return normalizer(x, mask)

    assert torch.autograd.gradcheck(normalise, [scores.requires_grad_()])


def test_sparsemax_sums_bfloat16_in_float32():
    torch.manual_seed(1)
    scores = (torch.randn(7, 61) / 50).bfloat16()
    mask = torch.ones(61, dtype=torch.bool)
    weights, exact = Sparsemax()(scores, mask), Sparsemax()(scores.double(), mask)
    assert weights.dtype == torch.bfloat16
    assert exact.gt(0).sum(dim=-1).min() > 30, "the sums are long"
    # The result is rounded to bfloat16; its float32 sums have up to 61 terms below 1.
    rounding, noise = torch.finfo(torch.bfloat16).eps / 2, 61 * torch.finfo(torch.float32).eps
    torch.testing.assert_close(weights.double(), exact, rtol=rounding, atol=noise)
