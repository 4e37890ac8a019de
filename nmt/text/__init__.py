"""Normalization and detokenization of text, and subword tokenizers (SentencePiece)."""

from nmt.text.detokenizer import detokenizer
from nmt.text.normalize import changed_lines, changes, normalize
from nmt.text.tokenizer import BOS, EOS, PAD, UNK, Tokenizer, TokenizerPair, train_tokenizer

__all__ = [
    "BOS",
    "EOS",
    "PAD",
    "UNK",
    "Tokenizer",
    "TokenizerPair",
    "changed_lines",
    "changes",
    "detokenizer",
    "normalize",
    "train_tokenizer",
]
