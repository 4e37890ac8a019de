"""The losses over the vocabulary equal the formula on all logits at once, in value and in every gradient."""

import copy
import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from grids import covering
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode

from nmt.kernels.vocabulary_loss import summed_agreement, summed_nll
from nmt.text import PAD

TARGETS = torch.tensor([[5, 3, 7, PAD], [6, PAD, PAD, PAD], [4, 9, 9, 3]])
WIDTH, VOCAB = 5, 11
TOKENS = int((TARGETS != PAD).sum())
FLOAT32, FLOAT16, BFLOAT16 = (torch.finfo(dtype).eps for dtype in (torch.float32, torch.float16, torch.bfloat16))

Loss = Callable[[Tensor, nn.Linear, Tensor, float], Tensor]
"""loss(features, output, targets, smoothing)"""


def plain_nll(features: Tensor, output: nn.Linear, targets: Tensor, smoothing: float = 0.0) -> Tensor:
    logits = output(features)
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    return functional.cross_entropy(
        logits.flatten(0, 1), targets.flatten(), ignore_index=PAD, reduction="sum", label_smoothing=smoothing
    )


Weights = tuple[float, float]


def second(features: Tensor) -> Tensor:
    """A second pass, which depends on the first, so that one gradient covers both."""
    return (2 * features.flip(-1)).sin()


def agreement(
    nll: Weights, divergence: Weights, features: Tensor, output: nn.Linear, targets: Tensor, smoothing: float = 0.0
) -> Tensor:
    passes = features, second(features)
    return summed_agreement(passes, output, targets, smoothing, nll=nll, divergence=divergence)


def plain_agreement(
    nll: Weights, divergence: Weights, features: Tensor, output: nn.Linear, targets: Tensor, smoothing: float = 0.0
) -> Tensor:
    passes = features, second(features)
    logits = (output(each[targets != PAD]) for each in passes)
    p, q = (each.to(torch.promote_types(each.dtype, torch.float32)).log_softmax(dim=-1) for each in logits)
    apart = (functional.kl_div(q, p, log_target=True, reduction="sum") for p, q in ((p, q), (q, p)))
    losses = (plain_nll(each, output, targets, smoothing) for each in passes)
    return sum(weight * value for weight, value in zip(nll + divergence, (*losses, *apart), strict=True))


# Of features, weights, logits and the logits' gradients; logits, which are below 2 here, count twice.
ROUNDINGS = 5
WEIGHTS = {
    "r_drop": ((0.5, 0.5), (1.25, 1.25)),
    "simcut": ((1.0, 0.0), (3.0, 0.0)),
    "all": ((0.2, 0.7), (0.1, 2.0)),
}
LOSSES: dict[str, tuple[Loss, Loss]] = {"nll": (summed_nll, plain_nll)} | {
    name: (partial(agreement, *weights), partial(plain_agreement, *weights)) for name, weights in WEIGHTS.items()
}
"""Each loss as computed in blocks, and by the formula."""
every_loss = pytest.mark.parametrize(("ours", "plain"), LOSSES.values(), ids=LOSSES)


def gradients(loss: Tensor, features: Tensor, output: nn.Linear) -> tuple[Tensor, ...]:
    return torch.autograd.grad(3 * loss, [features, *output.parameters()])


def with_parts(monkeypatch: pytest.MonkeyPatch, part: int, block: int) -> None:
    monkeypatch.setattr("nmt.kernels.vocabulary_loss.PART", {"cpu": part, "cuda": part})
    monkeypatch.setattr("nmt.kernels.vocabulary_loss.BLOCK", {"cpu": block, "cuda": block})


@pytest.fixture
def features() -> Tensor:
    torch.manual_seed(2)  # also for the layer that a test makes next
    return torch.randn(3, 4, WIDTH).requires_grad_()


PARTS = [(1, 1), (3, 3), (3, 2), (5, 4), (512, 3), (512, 512)]
# Every loss with all settings, every loss with all parts, and all settings with all parts.
ROWS = covering(
    itertools.product(LOSSES, itertools.product([False, True], [0.0, 0.3], [True, False]), PARTS),
)


@pytest.mark.parametrize(("name", "settings", "parts"), ROWS)
def test_loss_and_gradients_equal_those_of_the_formula(
    features: Tensor,
    name: str,
    settings: tuple[bool, float, bool],
    parts: tuple[int, int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (ours, plain), (bias, smoothing, selects) = LOSSES[name], settings
    with_parts(monkeypatch, *parts)
    monkeypatch.setattr("nmt.kernels.vocabulary_loss.selects_tokens", lambda device: selects)
    output, features = nn.Linear(WIDTH, VOCAB, bias=bias).double(), features.detach().double().requires_grad_()
    found, expected = (loss(features, output, TARGETS, smoothing) for loss in (ours, plain))
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(gradients(found, features, output), gradients(expected, features, output))


@every_loss
def test_padding_has_no_loss_and_no_gradient_even_if_its_logits_are_infinite(
    features: Tensor, ours: Loss, plain: Loss, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nmt.kernels.vocabulary_loss.selects_tokens", lambda device: False)
    output, padding = nn.Linear(WIDTH, VOCAB), TARGETS == PAD
    found = []
    with torch.no_grad():
        output.weight[:, 0] = 1e20
        features[..., 0] = 0
    for value in (0.0, 1e20):
        with torch.no_grad():
            features[..., 0][padding] = value
        loss = ours(features, output, TARGETS, 0.1)
        found.append((loss, *gradients(loss, features, output)))
    assert output(features)[padding].isinf().all()
    for finite, infinite in zip(*found, strict=True):
        assert infinite.equal(finite)


@every_loss
def test_the_gradient_equals_finite_differences(ours: Loss, plain: Loss, monkeypatch: pytest.MonkeyPatch) -> None:
    with_parts(monkeypatch, 4, 2)
    output, targets = nn.Linear(3, 7).double(), torch.tensor([[1, 6, 2, 2, 4]])
    inputs = [torch.randn(1, 5, 3, dtype=torch.double).requires_grad_(), *output.parameters()]

    def loss(features: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        # Parameters would be copies of the tensors that gradcheck changes.
        del output.weight, output.bias
        output.weight, output.bias = weight, bias
        return ours(features, output, targets, 0.2)

    assert torch.autograd.gradcheck(loss, inputs)


@every_loss
def test_under_autocast_it_differs_from_float32_only_by_rounding(features: Tensor, ours: Loss, plain: Loss) -> None:
    output = nn.Linear(WIDTH, VOCAB)
    exact = gradients(plain(features, output, TARGETS, 0.1), features, output)
    with torch.autocast("cpu", torch.bfloat16):
        loss = ours(features, output, TARGETS, 0.1)
    for found, wanted in zip(gradients(loss, features, output), exact, strict=True):
        assert found.dtype == torch.float32
        assert (found - wanted).norm() <= ROUNDINGS * BFLOAT16 / 2 * wanted.norm()


@every_loss
def test_sums_over_many_parts_lose_nothing_with_bfloat16_features(
    ours: Loss, plain: Loss, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Gradients of a thousand parts, summed in bfloat16, would be off by about sqrt(1000 / 3) = 18 roundings."""
    with_parts(monkeypatch, 2, 1)
    torch.manual_seed(3)
    output, targets = nn.Linear(WIDTH, VOCAB), torch.randint(PAD, VOCAB, (2, 1000))
    features = torch.randn(2, 1000, WIDTH).bfloat16().requires_grad_()
    same = features.detach().float().requires_grad_()
    _, exact, _ = gradients(plain(same, output, targets, 0.1), same, output)
    with torch.autocast("cpu", torch.bfloat16):
        loss = ours(features, output, targets, 0.1)
    _, found, _ = gradients(loss, features, output)
    assert found.dtype == torch.float32
    assert (found - exact).norm() <= ROUNDINGS * BFLOAT16 / 2 * exact.norm()


@every_loss
def test_autocast_to_float16_loses_no_small_gradient(features: Tensor, ours: Loss, plain: Loss) -> None:
    output = nn.Linear(WIDTH, VOCAB)
    # The first pieces have almost all probability, so the gradients of the others are small.
    nn.init.constant_(output.bias, -22.0)
    nn.init.zeros_(output.bias[:3])
    wide, precise = features.detach().double().requires_grad_(), copy.deepcopy(output).double()
    exact = gradients(plain(wide, precise, TARGETS, 0.0), wide, precise)
    assert (exact[1].abs() < 2**-25).any(), "float16 would make it 0"
    with torch.autocast("cpu", torch.float16):
        loss = ours(features, output, TARGETS, 0.0)
    for found, wanted, bound in zip(gradients(loss, features, output), exact, rounded(wide, precise), strict=True):
        assert ((found - wanted).abs() <= bound).all()


@torch.no_grad()
def rounded(features: Tensor, output: nn.Linear) -> tuple[Tensor, Tensor, Tensor]:
    """Bounds on what float32 may change in the gradients of features, weight and bias, given all in float64.

    Relative to a probability, its rounding is that of its logit, a sum of WIDTH + 1 terms, with a few more roundings.
    A logit's gradient is made of p, q and the target, whose weights sum up to 4 at most, and of the logarithm of p/q.
    """
    tokens = features[TARGETS != PAD]
    inputs = tokens, second(tokens)
    logits = [output(each) for each in inputs]
    p, q = (each.softmax(dim=-1) for each in logits)
    log_ratio = (p.log() - q.log()).abs().max()
    logit = (WIDTH + 4) * FLOAT32 * max(each.abs().max() for each in logits)
    by_token = p + q + functional.one_hot(TARGETS[TARGETS != PAD], VOCAB)
    by_token *= 3 * 4 * (1 + log_ratio) * logit  # `gradients` multiplies the loss by 3
    of_features = torch.zeros_like(features)
    through = by_token @ output.weight.abs()
    of_features[TARGETS != PAD] = through + 2 * through.flip(-1)  # the slope of the second pass is at most 2
    return of_features, by_token.T @ sum(each.abs() for each in inputs), 2 * by_token.sum(dim=0)


@every_loss
def test_float16_features_get_the_small_gradients_that_a_loss_scaler_saves(
    features: Tensor, ours: Loss, plain: Loss
) -> None:
    output, scale = nn.Linear(WIDTH, VOCAB), 2.0**20
    with torch.no_grad():
        output.weight.mul_(1e-8)
    half = features.detach().half().requires_grad_()
    same = half.detach().float().requires_grad_()
    exact, *_ = gradients(plain(same, output, TARGETS, 0.1), same, output)
    assert exact.any(), "there is no gradient"
    assert not exact.half().any(), "float16 can hold these"
    with torch.autocast("cpu", torch.float16):
        loss = ours(half, output, TARGETS, 0.1)
    found, *_ = gradients(loss * scale, half, output)
    # float16 rounds the gradient of each pass, the slope of the second one, their product and the sum: five roundings.
    # Passes may cancel, so a rounding is also relative to one pass's gradient, which is below 2e-8 here.
    assert exact.abs().max() < 2e-8
    torch.testing.assert_close(found.float() / scale, exact, rtol=5 * FLOAT16 / 2, atol=2e-8 * FLOAT16 / 2)


@every_loss
def test_gradients_are_right_for_more_tokens_than_a_block_at_the_default_sizes(ours: Loss, plain: Loss) -> None:
    torch.manual_seed(5)
    features = torch.randn(2, 1601, WIDTH, dtype=torch.float64, requires_grad=True)
    output, targets = nn.Linear(WIDTH, VOCAB).double(), torch.randint(PAD + 1, VOCAB, (2, 1601))
    found, expected = (gradients(loss(features, output, targets, 0.0), features, output) for loss in (ours, plain))
    torch.testing.assert_close(found, expected)


@every_loss
def test_without_gradients_only_the_loss_is_computed(features: Tensor, ours: Loss, plain: Loss) -> None:
    output = nn.Linear(WIDTH, VOCAB)
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        alone = ours(features, output, TARGETS, 0.0)
    passes = 1 if ours is summed_nll else 2
    assert counter.get_total_flops() == passes * 2 * int((TARGETS != PAD).sum()) * WIDTH * VOCAB
    assert alone.equal(ours(features, output, TARGETS, 0.0))


@every_loss
def test_large_logits_do_not_overflow(features: Tensor, ours: Loss, plain: Loss) -> None:
    output = nn.Linear(WIDTH, VOCAB)
    with torch.no_grad():
        output.weight.mul_(1e4)
    loss = ours(features, output, TARGETS, 0.1)
    expected = plain(features.double(), copy.deepcopy(output).double(), TARGETS, 0.1)
    # Each token's logits are sums of WIDTH + 1 terms; a few more roundings follow, and weights sum up to 4 at most.
    noise = 4 * TOKENS * (WIDTH + 4) * FLOAT32 * float(output(features).detach().abs().max())
    torch.testing.assert_close(loss.double(), expected, rtol=0, atol=noise)
    assert all(found.isfinite().all() for found in gradients(loss, features, output))


@every_loss
def test_a_constant_in_all_logits_does_not_round_the_loss(
    ours: Loss, plain: Loss, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its sum over the tokens of a block would be ten thousand times the loss."""
    with_parts(monkeypatch, 4096, 4096)
    torch.manual_seed(2)
    output, features = nn.Linear(WIDTH, VOCAB), torch.randn(1, 4000, WIDTH)
    targets = torch.randint(PAD + 1, VOCAB, (1, 4000))
    with torch.no_grad():
        output.bias.add_(4096)
        found = ours(features, output, targets, 0.1)
        exact = plain(features.double(), output.double(), targets, 0.1)
    # Logits of 4096 are rounded to float32, independently for each token: three standard deviations of their sum.
    torch.testing.assert_close(found.double(), exact, rtol=0, atol=3 * 4000**0.5 * 4096 * FLOAT32)


@every_loss
def test_no_target_gives_no_loss(features: Tensor, ours: Loss, plain: Loss) -> None:
    output = nn.Linear(WIDTH, VOCAB)
    loss = ours(features, output, torch.full_like(TARGETS, PAD), 0.0)
    assert loss == 0
    assert all((found == 0).all() for found in gradients(loss, features, output))


@every_loss
def test_memory_does_not_grow_with_the_tokens(
    ours: Loss, plain: Loss, monkeypatch: pytest.MonkeyPatch, largest_made: Callable[[], Any]
) -> None:
    """Only the logits of one part exist at a time, however many tokens there are."""
    with_parts(monkeypatch, 16, 16)
    output, largest = nn.Linear(WIDTH, 1000, bias=False), []
    for tokens in (160, 480):
        features, targets = torch.randn(1, tokens, WIDTH), torch.full((1, tokens), 3)
        with largest_made() as seen:
            ours(features, output, targets, 0.0)
        largest.append(seen.numbers)
    assert largest == [16 * 1000] * 2
