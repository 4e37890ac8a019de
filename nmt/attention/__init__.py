"""Attention: a scorer of queries and keys, a window over the keys, and a normalizer that turns scores into weights."""

from nmt.attention.attention import Attention, SiteWatch
from nmt.attention.masks import causal_mask, lengths_to_mask
from nmt.attention.multihead import KeysValues, MultiHeadAttention, SingleHeadAttention, with_heads
from nmt.attention.windows import VisibleKeys
from nmt.kernels.masked_softmax import masked_softmax

__all__ = [
    "Attention",
    "KeysValues",
    "MultiHeadAttention",
    "SingleHeadAttention",
    "SiteWatch",
    "VisibleKeys",
    "causal_mask",
    "lengths_to_mask",
    "masked_softmax",
    "with_heads",
]
