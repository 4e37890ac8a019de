import torch

from nmt.attention import causal_mask, lengths_to_mask


def test_lengths_per_sentence_and_per_query():
    assert lengths_to_mask(torch.tensor([2, 0, 3]), 3).tolist() == [[True, True, False], [False] * 3, [True] * 3]
    per_query = lengths_to_mask(torch.tensor([[1, 2], [3, 0]]), 3)
    assert per_query.sum(dim=-1).tolist() == [[1, 2], [3, 0]]


def test_causal_mask_lets_each_query_see_itself_and_earlier_positions():
    assert causal_mask(3).tolist() == [[True, False, False], [True, True, False], [True, True, True]]
