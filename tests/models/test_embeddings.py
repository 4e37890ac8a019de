"""Embeddings that are unit vectors, and what is left of them after training."""

from collections.abc import Callable

import pytest
import torch
from torch.nn import functional as F

from nmt.models import Seq2Seq
from nmt.models.embeddings import with_plain_weights

Sentences = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def test_rows_are_the_trained_vectors_at_length_one(make_model: Callable[..., Seq2Seq]) -> None:
    model = make_model("transformer", "scaled_dot", fix_norm=True)
    trained = dict(model.named_parameters())["target_embedding.parametrizations.weight.original"]
    torch.testing.assert_close(model.target_embedding.weight, F.normalize(trained, dim=-1))
    assert model.target_embedding.weight.norm(dim=-1).allclose(torch.ones(23, dtype=torch.double))
    assert not trained.norm(dim=-1).allclose(torch.ones(23, dtype=torch.double))


@pytest.mark.parametrize("joint", [False, True])
def test_the_tables_share_what_they_shared(make_model: Callable[..., Seq2Seq], joint: bool) -> None:
    tied, free = (make_model("transformer", "dot", fix_norm=fix_norm, joint=joint) for fix_norm in (True, False))
    assert len(list(tied.parameters())) == len(list(free.parameters()))
    assert sum(each.numel() for each in tied.parameters()) == sum(each.numel() for each in free.parameters())


def test_a_longer_vector_is_the_same_embedding(make_model: Callable[..., Seq2Seq], sentences: Sentences) -> None:
    source, mask, target = sentences
    model = make_model("transformer", "scaled_dot", fix_norm=True)
    before = model(source, mask, target)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "parametrizations" in name:
                parameter *= 3
    torch.testing.assert_close(model(source, mask, target), before)


@pytest.mark.parametrize("joint", [False, True])
def test_plain_weights_are_the_same_model(
    make_model: Callable[..., Seq2Seq], sentences: Sentences, joint: bool
) -> None:
    model = make_model("transformer", "scaled_dot", fix_norm=True, joint=joint)
    before = model(*sentences)
    with_plain_weights(model)
    assert not any("parametrizations" in name for name, _ in model.named_parameters())
    assert model.output.weight is model.target_embedding.weight
    torch.testing.assert_close(model(*sentences), before)
