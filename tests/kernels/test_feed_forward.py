"""The fused feed-forward net equals its formula."""

from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor
from torch.autograd.graph import Node

from nmt.models.transformer_layers import FeedForward


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("p", [0.25, 0.0])
def test_it_equals_the_formula_with_dropout(p: float, training: bool):
    """max(0, x W1 + b1) W2 + b2 (Vaswani et al. 2017, equation 2), in value and in every gradient."""
    torch.manual_seed(1)
    net, x = FeedForward(6, 24, p).double().train(training), torch.randn(3, 5, 6, dtype=torch.double)
    wanted = [x.requires_grad_(), *net.parameters()]

    def formula(inputs: Tensor) -> Tensor:
        result: Tensor = net.outer(net.dropout(net.inner(inputs).relu()))
        return result

    def seeded(compute: Callable[[Tensor], Tensor]) -> tuple[Tensor, ...]:
        torch.manual_seed(2)
        result = compute(x)
        return result, *torch.autograd.grad(result.square().sum(), wanted)

    torch.testing.assert_close(seeded(net), seeded(formula))


def nodes(node: Node) -> Iterator[Node]:
    yield node
    for before, _ in node.next_functions:
        if before is not None:
            yield from nodes(before)


@pytest.mark.parametrize("training", [True, False])
def test_autograd_copies_no_gradient(training: bool):
    result = FeedForward(6, 24, 0.1).train(training)(torch.randn(3, 5, 6))
    names = [node.name() for node in nodes(result.grad_fn)]
    assert any("Relu" in name for name in names)
    assert not any("CopySlices" in name for name in names)
