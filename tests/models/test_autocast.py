"""A Transformer's residual stream under autocast on a CPU: where it is rounded, and how that affects its gradients.

Bounds follow from the number format: each rounding changes a number by EPS / 2 at most, independently of the others, so
that the errors of n roundings in a row add up to sqrt(n) EPS / 2.
"""

import math
from functools import partial

import pytest
import torch
from torch import Tensor

from nmt.attention import Attention, windows
from nmt.attention.normalizers import Softmax
from nmt.attention.scorers import ScaledDot
from nmt.models import Transformer, VocabularySizes, transformer_layers
from nmt.models.norms import LayerNorm, ScaleNorm
from nmt.models.transformer_layers import Norm, Sublayer

Sentences = tuple[Tensor, Tensor, Tensor]
EPS = torch.finfo(torch.bfloat16).eps
SUBLAYERS = 3 * 2 + 3 * 3
# Of each sub-layer: its input, weights and results of two products; and with a bfloat16 stream its sum and its norm.
FORWARD, STREAM = 6 * SUBLAYERS, 2 * SUBLAYERS


def relative_error(found: Tensor, exact: Tensor) -> float:
    return float(((found - exact).norm() / exact.norm()).detach())


def bound(roundings: int) -> float:
    return math.sqrt(roundings) * EPS / 2


VARIANTS = [(LayerNorm, True, False), (LayerNorm, True, True), (ScaleNorm, True, True), (LayerNorm, False, False)]


@pytest.fixture(params=VARIANTS, ids=["pre-norm", "pre-norm, FixNorm", "ScaleNorm, FixNorm", "post-norm"])
def model(request: pytest.FixtureRequest) -> Transformer:
    norm: Norm
    norm, norm_first, fix_norm = request.param
    torch.manual_seed(5)
    site = partial(Attention, ScaledDot, windows.Global, Softmax)
    sizes = {"dim": 64, "ffn_dim": 256, "num_heads": 4, "num_layers": 3, "dropout": 0.3}
    vocabulary = VocabularySizes(19, 23, joint=False)
    return Transformer(
        site, site, site, norm, norm_first=norm_first, fix_norm=fix_norm, vocabulary=vocabulary, **sizes
    ).eval()


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize(
    ("autocast", "expected"),
    [(torch.bfloat16, torch.bfloat16), (torch.float16, torch.float32), (None, torch.float32)],
)
def test_the_stream_is_bfloat16_only_under_bfloat16_autocast(
    model: Transformer, sentences: Sentences, autocast: torch.dtype | None, expected: torch.dtype, training: bool
):
    seen: list[torch.dtype] = []
    for module in model.train(training).modules():
        if isinstance(module, Sublayer):
            module.norm.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].dtype))
    with torch.autocast("cpu", autocast, enabled=autocast is not None):
        model(*sentences)
    assert len(seen) == SUBLAYERS
    assert set(seen) == {expected}


def test_gradients_differ_from_float32_only_by_rounding(
    model: Transformer, sentences: Sentences, monkeypatch: pytest.MonkeyPatch
):
    def gradients() -> Tensor:
        loss = model(*sentences).float().log_softmax(dim=-1)[..., 7].sum()
        return torch.cat([found.flatten() for found in torch.autograd.grad(loss, list(model.parameters()))])

    exact = gradients()
    with torch.autocast("cpu", torch.bfloat16):
        rounded = gradients()
        monkeypatch.setattr(transformer_layers, "cast_residual", lambda x: x)
        plain = gradients()
    assert 0 < relative_error(plain, exact) < bound(2 * FORWARD)
    assert not rounded.equal(plain)
    assert relative_error(rounded, exact) < bound(2 * (FORWARD + STREAM))


def test_step_by_step_equals_the_whole_forward_up_to_rounding(model: Transformer, sentences: Sentences):
    source, mask, target = sentences
    exact = model(source, mask, target).log_softmax(dim=-1)
    with torch.autocast("cpu", torch.bfloat16):
        whole = model(source, mask, target).float().log_softmax(dim=-1)
        memory = model.encode(source, mask)
        state, steps = model.start(memory, beams=1), []
        for t in range(target.shape[1]):
            log_probs, state = model.step(target[:, t : t + 1], state, memory)
            steps.append(log_probs.float())
    assert 0 < relative_error(whole, exact) < bound(FORWARD + STREAM)
    assert relative_error(torch.cat(steps, dim=1), exact) < bound(FORWARD + STREAM)
