"""A sequence-to-sequence model of a few lines: the loss must not depend on what the model is."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from nmt.data.batch import Batch, collate
from nmt.data.example import Example
from nmt.models.base import Seq2Seq

VOCABULARY = 11


class Bag(Seq2Seq):
    """p(next) from the last piece and the mean of the source embeddings."""

    def __init__(self) -> None:
        super().__init__()
        self.source_embedding = nn.Embedding(VOCABULARY, 5)
        self.output = nn.Linear(5, VOCABULARY)

    @property
    def sites(self) -> dict[str, Any]:
        return {}

    def annotate(self, embedded: Tensor, source_mask: Tensor, watch: Any = None) -> tuple[Tensor, None]:
        weights = source_mask.to(embedded) / source_mask.sum(1, keepdim=True)
        return (embedded * weights.unsqueeze(-1)).sum(1), None

    def remember(self, annotations: Tensor, source_mask: Tensor, first: None) -> Tensor:
        return annotations

    def decode(self, target_input: Tensor, memory: Tensor, watch: Any = None) -> Tensor:
        return self.source_embedding(target_input) + memory.unsqueeze(1)

    def start(self, memory: Tensor, beams: int) -> Tensor:
        return memory.new_zeros(len(memory) * beams)

    def advance_features(
        self, tokens: Tensor, state: Tensor, memory: Tensor, watch: Any = None
    ) -> tuple[Tensor, Tensor]:
        return self.decode(tokens, memory), state


@pytest.fixture
def model() -> Bag:
    """In float64, whose default tolerance is 1e-7: a gradient has some 10 terms, each rounded by 1e-16."""
    torch.manual_seed(0)
    return Bag().double()


@pytest.fixture
def batches() -> list[Batch]:
    """Three batches with unequal numbers of target tokens."""
    examples = [
        Example(0, [4, 5], [6]),
        Example(1, [7], [8, 9, 10, 4, 5]),
        Example(2, [4, 4, 6], [5, 7]),
        Example(3, [9], [9]),
    ]
    return [collate(examples[:1]), collate(examples[1:3]), collate(examples[3:])]
