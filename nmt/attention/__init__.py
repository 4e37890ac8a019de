"""Attention: scores between queries and keys, a window over the keys, and a normaliser that makes weights of scores."""

from nmt.attention.attention import Attention
from nmt.attention.masks import causal_mask, lengths_to_mask
from nmt.attention.multihead import KeysValues, MultiHeadAttention, SingleHeadAttention, heads
from nmt.attention.normalizers import masked_softmax
from nmt.attention.scorers import Scorer

__all__ = [
    "Attention",
    "KeysValues",
    "MultiHeadAttention",
    "Scorer",
    "SingleHeadAttention",
    "causal_mask",
    "heads",
    "lengths_to_mask",
    "masked_softmax",
]
