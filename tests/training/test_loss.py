"""The loss over the vocabulary is torch's cross entropy of the output layer, in value and in every gradient."""

from functools import partial
from itertools import pairwise

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode

from nmt.text import PAD
from nmt.training.loss import LinearLoss, _agreement, _cross_entropy, summed_agreement, summed_nll

TARGETS = torch.tensor([[5, 3, 7, PAD], [6, PAD, PAD, PAD], [4, 9, 9, 3]])
WIDTH, VOCAB = 5, 11


def torchs_own(features: Tensor, output: nn.Linear, smoothing: float) -> Tensor:
    logits = output(features).float() if features.dtype == torch.float32 else output(features)
    return functional.cross_entropy(
        logits.flatten(0, 1), TARGETS.flatten(), ignore_index=PAD, reduction="sum", label_smoothing=smoothing
    )


def gradients(loss: Tensor, features: Tensor, output: nn.Linear) -> tuple[Tensor, ...]:
    return torch.autograd.grad(3 * loss, [features, *output.parameters()], retain_graph=True)


def plain_agreement(
    passes: tuple[Tensor, Tensor], output: nn.Linear, nll: tuple[float, float], divergence: tuple[float, float]
) -> Tensor:
    """The formula of `summed_agreement`, with the logits of all tokens at once."""
    p, q = (functional.log_softmax(output(features[TARGETS != PAD]).float(), dim=-1) for features in passes)
    apart = (functional.kl_div(q, p, log_target=True, reduction="sum") for p, q in ((p, q), (q, p)))
    losses = (torchs_own(features, output, 0.1) for features in passes)
    return sum(weight * value for weight, value in zip(nll + divergence, (*losses, *apart), strict=True))


@pytest.fixture
def features() -> Tensor:
    return torch.randn(3, 4, WIDTH, generator=torch.Generator().manual_seed(2)).requires_grad_()


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
@pytest.mark.parametrize(("part", "block"), [(1, 1), (3, 3), (3, 2), (5, 2), (512, 3), (512, 512)])
def test_loss_and_gradients_are_torchs(
    features: Tensor, bias: bool, smoothing: float, part: int, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nmt.training.loss.PART", {"cpu": part, "cuda": part})
    monkeypatch.setattr("nmt.training.loss.BLOCK", {"cpu": block, "cuda": block})
    output = nn.Linear(WIDTH, VOCAB, bias=bias)
    ours, theirs = summed_nll(features, output, TARGETS, smoothing), torchs_own(features, output, smoothing)
    torch.testing.assert_close(ours, theirs)
    pairs = zip(gradients(ours, features, output), gradients(theirs, features, output), strict=True)
    for found, expected in pairs:
        torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(("part", "block"), [(1, 1), (5, 4), (512, 512)])
@pytest.mark.parametrize("weights", [((0.5, 0.5), (1.25, 1.25)), ((1.0, 0.0), (3.0, 0.0)), ((0.2, 0.7), (0.1, 2.0))])
def test_agreement_of_two_passes_and_its_gradients_are_those_of_the_plain_formula(
    features: Tensor,
    bias: bool,
    part: int,
    block: int,
    weights: tuple[tuple[float, float], tuple[float, float]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("nmt.training.loss.PART", {"cpu": part, "cuda": part})
    monkeypatch.setattr("nmt.training.loss.BLOCK", {"cpu": block, "cuda": block})
    output, second = nn.Linear(WIDTH, VOCAB, bias=bias), torch.randn(3, 4, WIDTH).requires_grad_()
    nll, divergence = weights
    ours = summed_agreement((features, second), output, TARGETS, 0.1, nll=nll, divergence=divergence)
    theirs = plain_agreement((features, second), output, nll, divergence)
    torch.testing.assert_close(ours, theirs)
    for one in (features, second):
        pairs = zip(gradients(ours, one, output), gradients(theirs, one, output), strict=True)
        for found, expected in pairs:
            torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


def test_agreement_of_sure_but_unlike_passes_is_finite(features: Tensor) -> None:
    output = nn.Linear(WIDTH, VOCAB)
    nn.init.constant_(output.weight, 0.0)
    with torch.no_grad():
        output.weight[1], output.weight[2] = 1e3, -1e3
    second = (-features).detach().requires_grad_()
    loss = summed_agreement((features, second), output, TARGETS, nll=(0.5, 0.5), divergence=(1.0, 1.0))
    assert loss.isfinite()
    assert all(found.isfinite().all() for found in gradients(loss, features, output))


def test_the_gradient_is_that_of_finite_differences(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nmt.training.loss.PART", {"cpu": 2, "cuda": 2})
    shapes = (5, 3), (5, 3), (7, 3), (7,)
    x, y, weight, bias = (torch.randn(shape, dtype=torch.double).requires_grad_() for shape in shapes)
    targets = torch.tensor([1, 6, 2, 2, 4])
    rule = partial(_cross_entropy, smoothing=0.2)
    assert torch.autograd.gradcheck(partial(LinearLoss.apply, rule, True, targets), (weight, bias, x))
    rule = partial(_agreement, smoothing=0.2, nll=(0.3, 0.9), divergence=(1.7, 0.4))
    assert torch.autograd.gradcheck(partial(LinearLoss.apply, rule, True, targets), (weight, bias, x, y))


def test_under_autocast_it_is_as_near_as_torchs(features: Tensor) -> None:
    output = nn.Linear(WIDTH, VOCAB)
    exact = gradients(torchs_own(features, output, 0.1), features, output)
    found = []
    for loss in (lambda: summed_nll(features, output, TARGETS, 0.1), lambda: torchs_own(features, output, 0.1)):
        with torch.autocast("cpu", torch.bfloat16):
            value = loss()
        found.append(gradients(value, features, output))
    for ours, theirs, wanted in zip(*found, exact, strict=True):
        assert ours.dtype == theirs.dtype == torch.float32
        assert (ours - wanted).norm() <= 1.2 * (theirs - wanted).norm() + 1e-3 * wanted.norm()


def test_more_tokens_than_a_block_have_torchs_gradients_at_the_sizes_in_use() -> None:
    torch.manual_seed(5)
    features = torch.randn(2, 1601, WIDTH, dtype=torch.float64, requires_grad=True)
    output, targets = nn.Linear(WIDTH, VOCAB).double(), torch.randint(PAD + 1, VOCAB, (2, 1601))
    theirs = functional.cross_entropy(output(features).flatten(0, 1), targets.flatten(), reduction="sum")
    pairs = zip(
        gradients(summed_nll(features, output, targets), features, output),
        gradients(theirs, features, output),
        strict=True,
    )
    for found, expected in pairs:
        torch.testing.assert_close(found, expected)


def test_without_gradients_only_the_loss_is_computed(features: Tensor) -> None:
    output = nn.Linear(WIDTH, VOCAB)
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        alone = summed_nll(features, output, TARGETS)
    assert counter.get_total_flops() == 2 * int((TARGETS != PAD).sum()) * WIDTH * VOCAB
    torch.testing.assert_close(alone, summed_nll(features, output, TARGETS))


def test_large_logits_do_not_overflow(features: Tensor) -> None:
    output = nn.Linear(WIDTH, VOCAB)
    nn.init.constant_(output.weight, 1e4)
    assert summed_nll(features, output, TARGETS).isfinite()


def test_no_target_is_no_loss(features: Tensor) -> None:
    output = nn.Linear(WIDTH, VOCAB)
    loss = summed_nll(features, output, torch.full_like(TARGETS, PAD))
    assert loss == 0
    assert all((found == 0).all() for found in gradients(loss, features, output))


def test_memory_does_not_grow_with_the_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the logits only one part exists: what is asked for at a time is a few times that part, however many tokens."""
    monkeypatch.setattr("nmt.training.loss.PART", {"cpu": 16, "cuda": 16})
    output, largest = nn.Linear(WIDTH, 1000, bias=False), []
    for tokens in (160, 1600):
        features, targets = torch.randn(1, tokens, WIDTH), torch.full((1, tokens), 3)
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as seen:
            summed_nll(features, output, targets)
        largest.append(max(event.cpu_memory_usage for event in seen.events()))
    assert all(later <= 1.5 * earlier for earlier, later in pairwise(largest))
