"""scripts/bench/budget.py: what it counts; nothing here depends on the clock."""

import torch
from torch.nn import functional

from scripts.bench.budget import KINDS, Operations


def test_every_operation_is_of_one_kind() -> None:
    names = [name for kind in KINDS.values() for name in kind]
    assert len(names) == len(set(names))


def test_the_multiplications_of_products_are_counted() -> None:
    x, weight, bias = torch.randn(5, 7), torch.randn(11, 7), torch.randn(11)
    with torch.inference_mode(), Operations() as operations:
        functional.linear(x, weight, bias)  # 5 x 7 x 11
        x @ x.T  # 5 x 7 x 5
        x + 1
    assert operations.multiplications == 5 * 7 * 11 + 5 * 7 * 5
    with Operations() as operations:
        functional.linear(x, weight.requires_grad_(), bias).sum().backward()
    assert operations.multiplications == 2 * 5 * 7 * 11, operations.calls  # forward, and the gradient of the weight
