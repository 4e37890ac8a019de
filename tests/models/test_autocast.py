"""The residual stream of a Transformer under autocast: where it is rounded, and how little that turns the gradients."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from nmt.models import Seq2Seq, transformer
from nmt.models.norms import LayerNorm, ScaleNorm
from nmt.models.transformer_layers import Norm, Sublayer

Sentences = tuple[Tensor, Tensor, Tensor]
VARIANTS = [(LayerNorm, True, False), (LayerNorm, True, True), (ScaleNorm, True, True), (LayerNorm, False, False)]


@pytest.fixture(params=VARIANTS, ids=["pre-norm", "pre-norm, FixNorm", "ScaleNorm, FixNorm", "post-norm"])
def model(make_model: Callable[..., Seq2Seq], request: pytest.FixtureRequest) -> Seq2Seq:
    norm: Norm
    norm, norm_first, fix_norm = request.param
    return make_model("transformer", "scaled_dot", norm=norm, norm_first=norm_first, fix_norm=fix_norm).float()


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize(
    ("autocast", "expected"),
    [(torch.bfloat16, torch.bfloat16), (torch.float16, torch.float32), (None, torch.float32)],
)
def test_the_stream_is_bfloat16_where_that_is_multiplied_and_never_float16(
    model: Seq2Seq, sentences: Sentences, autocast: torch.dtype | None, expected: torch.dtype, training: bool
):
    seen: list[torch.dtype] = []
    for module in model.train(training).modules():
        if isinstance(module, Sublayer):
            module.norm.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].dtype))
    with torch.autocast("cpu", autocast, enabled=autocast is not None):
        model(*sentences)
    assert len(seen) == 2 * 2 + 2 * 3
    assert set(seen) == {expected}


def test_its_rounding_turns_no_gradient_far(model: Seq2Seq, sentences: Sentences, monkeypatch: pytest.MonkeyPatch):
    def gradients() -> list[Tensor]:
        loss = model(*sentences).float().log_softmax(dim=-1)[..., 7].sum()
        return list(torch.autograd.grad(loss, list(model.parameters())))

    def error(found: list[Tensor]) -> float:
        """The largest error of a parameter's gradient, of its length; a key's bias has a gradient of 0."""
        return max(
            float((ours - true).norm() / true.norm())
            for ours, true in zip(found, exact, strict=True)
            if true.norm() > 1e-4
        )

    exact = gradients()
    with torch.autocast("cpu", torch.bfloat16):
        rounded = gradients()
        monkeypatch.setattr(transformer, "as_stream", lambda x: x)
        plain = gradients()
    assert error(rounded) != error(plain)
    assert error(rounded) < 0.2
