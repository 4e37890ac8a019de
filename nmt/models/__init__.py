"""The models. They differ in which state is the query, when it attends, and where the context goes."""

from nmt.models.bahdanau import Bahdanau
from nmt.models.base import Seq2Seq
from nmt.models.document_model import DocumentModel
from nmt.models.embeddings import VocabularySizes
from nmt.models.luong import Luong
from nmt.models.masked import MaskedTransformer
from nmt.models.transformer import Transformer

__all__ = [
    "Bahdanau",
    "DocumentModel",
    "Luong",
    "MaskedTransformer",
    "Seq2Seq",
    "Transformer",
    "VocabularySizes",
]
