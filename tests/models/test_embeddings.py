"""Embeddings and output layers whose rows have one norm, and their plain weights after training."""

import math
from collections.abc import Callable

import pytest
import torch
from torch.nn import functional as F

from nmt.models import Seq2Seq
from nmt.models.embeddings import with_plain_weights

RECURRENT = ("bahdanau", "luong")
MODELS = (*RECURRENT, "transformer")

Sentences = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


@pytest.mark.parametrize(
    ("name", "layer", "length"),
    [("transformer", "target_embedding", 1.0), ("transformer", "source_embedding", 1.0), ("transformer", "output", 1.0)]
    + [(name, table, 11**0.5) for name in RECURRENT for table in ("target_embedding", "source_embedding")]
    + [("luong", "output", 5.0), ("bahdanau", "output", 1.0)],
)
def test_rows_are_the_trained_vectors_scaled_to_one_norm(
    make_model: Callable[..., Seq2Seq], name: str, layer: str, length: float
) -> None:
    module = getattr(make_model(name, "scaled_dot", fix_norm=True), layer)
    trained = dict(module.named_parameters())["parametrizations.weight.original"]
    torch.testing.assert_close(module.weight, length * F.normalize(trained, dim=-1))
    assert module.weight.norm(dim=-1).allclose(torch.tensor(length, dtype=torch.double))
    # short, so that an optimizer step turns it far
    assert trained.square().mean().sqrt() < 0.01


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("joint", [False, True])
def test_shared_tables_stay_shared(make_model: Callable[..., Seq2Seq], name: str, joint: bool) -> None:
    tied, free = (make_model(name, "dot", fix_norm=fix_norm, joint=joint) for fix_norm in (True, False))
    assert len(list(tied.parameters())) == len(list(free.parameters()))
    assert sum(each.numel() for each in tied.parameters()) == sum(each.numel() for each in free.parameters())


@pytest.mark.parametrize("name", MODELS)
def test_training_begins_near_equal_probabilities(
    make_model: Callable[..., Seq2Seq], sentences: Sentences, name: str
) -> None:
    logits = make_model(name, "scaled_dot", fix_norm=True)(*sentences)
    nats = torch.logsumexp(logits, dim=-1) - logits.mean(dim=-1)
    assert nats.max() < math.log(logits.shape[-1]) + 2


@pytest.mark.parametrize("name", MODELS)
def test_a_longer_vector_is_the_same_embedding(
    make_model: Callable[..., Seq2Seq], sentences: Sentences, name: str
) -> None:
    source, mask, target = sentences
    model = make_model(name, "scaled_dot", fix_norm=True)
    before = model(source, mask, target)
    with torch.no_grad():
        for place, parameter in model.named_parameters():
            if "parametrizations" in place:
                parameter *= 3
    torch.testing.assert_close(model(source, mask, target), before)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("joint", [False, True])
def test_plain_weights_are_the_same_model(
    make_model: Callable[..., Seq2Seq], sentences: Sentences, name: str, joint: bool
) -> None:
    model = make_model(name, "scaled_dot", fix_norm=True, joint=joint)
    before = model(*sentences)
    with_plain_weights(model)
    assert not any("parametrizations" in name for name, _ in model.named_parameters())
    assert (model.output.weight is model.target_embedding.weight) == (name == "transformer")
    assert (model.source_embedding.weight is model.target_embedding.weight) == joint
    torch.testing.assert_close(model(*sentences), before)
