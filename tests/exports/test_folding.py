"""Scorers folded into the projections: the same attention as scaled dot-product, and refusals for all others."""

from functools import partial

import pytest
import torch

from nmt.attention import Attention, MultiHeadAttention
from nmt.attention.normalizers import Softmax
from nmt.attention.scorers import Dot, General, NoScore, ScaledDot, Scorer
from nmt.attention.windows import Global
from nmt.exports.folding import Projection, folded


def attention_with(scorer: type[Scorer]) -> MultiHeadAttention:
    made = MultiHeadAttention(partial(Attention, scorer, Global, Softmax), 12, 12, 3, dropout=0.0).double()
    for parameter in made.parameters():
        torch.nn.init.normal_(parameter)
    return made


def by_hand(parts: tuple[Projection, ...], queries: torch.Tensor, keys: torch.Tensor, heads: int) -> torch.Tensor:
    """Concat(softmax(q k / sqrt(d)) v) W_O."""
    query, key, value = (
        (inputs @ part.weight.T + part.bias).unflatten(-1, (heads, -1)).transpose(1, 2)
        for part, inputs in zip(parts[:3], (queries, keys, keys), strict=True)
    )
    weights = (query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5).softmax(dim=-1)
    return (weights @ value).transpose(1, 2).flatten(2) @ parts[3].weight.T + parts[3].bias


@pytest.mark.parametrize("scorer", [ScaledDot, Dot, General, NoScore])
def test_the_folded_projections_are_scaled_dot_product_attention(scorer: type[Scorer]) -> None:
    torch.manual_seed(1)
    attention, queries, keys = attention_with(scorer), torch.randn(2, 5, 12).double(), torch.randn(2, 7, 12).double()
    expected = attention(queries, attention.project(keys), torch.ones(2, 1, 1, 7, dtype=torch.bool))
    torch.testing.assert_close(by_hand(folded(attention), queries, keys, 3), expected)


def test_the_folded_projections_are_copies() -> None:
    attention = attention_with(ScaledDot)
    before = [parameter.clone() for parameter in attention.parameters()]
    for part in folded(attention):
        part.weight.fill_(7)
        part.bias.fill_(7)
    assert all(map(torch.equal, attention.parameters(), before))
