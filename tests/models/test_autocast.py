"""A Transformer under autocast to bfloat16: what is rounded, and how little that changes."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from nmt.models import Seq2Seq, Transformer
from nmt.models.norms import LayerNorm, ScaleNorm

Sentences = tuple[Tensor, Tensor, Tensor]
VARIANTS = [(LayerNorm, True), (ScaleNorm, True), (LayerNorm, False)]


@pytest.mark.parametrize("autocast", [False, True])
@pytest.mark.parametrize(("norm", "norm_first"), VARIANTS)
def test_the_residual_stream_is_of_the_type_that_is_multiplied(
    make_model: Callable[..., Seq2Seq],
    sentences: Sentences,
    norm: Callable[[int], nn.Module],
    norm_first: bool,
    autocast: bool,
):
    model = make_model("transformer", "scaled_dot", norm=norm, norm_first=norm_first).float()
    assert isinstance(model, Transformer)
    seen: list[torch.dtype] = []
    for layer in (*model.encoder, *model.decoder):
        layer.around_ffn.norm.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].dtype))
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        model(*sentences)
    assert len(seen) == 4
    assert set(seen) == {torch.bfloat16 if autocast else torch.float32}


@pytest.mark.parametrize(("norm", "norm_first"), VARIANTS)
def test_its_rounding_hardly_turns_the_gradient(
    make_model: Callable[..., Seq2Seq], sentences: Sentences, norm: Callable[[int], nn.Module], norm_first: bool
):
    model = make_model("transformer", "scaled_dot", norm=norm, norm_first=norm_first).float()

    def gradient() -> Tensor:
        loss = model(*sentences).float().log_softmax(dim=-1)[..., 7].sum()
        return torch.cat([each.flatten() for each in torch.autograd.grad(loss, list(model.parameters()))])

    exact = gradient()
    with torch.autocast("cpu", torch.bfloat16):
        rounded = gradient()
    assert rounded.dtype == torch.float32
    assert not rounded.equal(exact)
    assert torch.cosine_similarity(rounded, exact, dim=0) > 0.999
