import torch

from nmt.attention import lengths_to_mask, masked_softmax


def test_blocked_keys_get_exactly_zero_and_rows_sum_to_one():
    scores = torch.randn(2, 2, 4)
    weights = masked_softmax(scores, lengths_to_mask(torch.tensor([2, 3]), 4)[:, None, :])
    assert weights[0, :, 2:].eq(0).all()
    assert weights[1, :, 3:].eq(0).all()
    assert weights[0, :, :2].gt(0).all()
    torch.testing.assert_close(weights.sum(dim=-1), torch.ones(2, 2))


def test_lengths_per_query():
    weights = masked_softmax(torch.zeros(1, 2, 3), lengths_to_mask(torch.tensor([[1, 2]]), 3))
    assert weights.tolist() == [[[1, 0, 0], [0.5, 0.5, 0]]]


def test_content_of_blocked_scores_changes_nothing():
    mask = torch.tensor([True, False, True])
    scores = torch.randn(1, 1, 3)
    other = scores.clone()
    other[..., 1] = 1e9
    assert masked_softmax(scores, mask).equal(masked_softmax(other, mask))


def test_a_row_with_nothing_allowed_is_zeros_with_zero_gradient():
    scores = torch.randn(1, 2, 3, requires_grad=True)
    mask = torch.tensor([[False, False, False], [True, True, False]])
    weights = masked_softmax(scores, mask)
    assert weights[0, 0].eq(0).all()
    (weights * torch.arange(3.0)).sum().backward()
    assert scores.grad[0, 0].eq(0).all()
    assert scores.grad[0, 1, :2].abs().gt(0).all()


def test_half_precision_stays_finite():
    weights = masked_softmax(torch.zeros(1, 1, 2, dtype=torch.bfloat16), torch.tensor([True, False]))
    assert weights.tolist() == [[[1, 0]]]
