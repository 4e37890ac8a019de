"""One product per head equals the batched product, without its copies."""

from collections.abc import Callable
from typing import Any

import torch

from nmt.kernels.headwise_product import headwise_product


def test_it_equals_the_batched_product_in_value_and_gradient():
    vectors = torch.randn(2, 3, 4, 5, dtype=torch.float64, requires_grad=True)
    matrices = torch.randn(3, 5, 7, dtype=torch.float64, requires_grad=True)
    found, expected = headwise_product(vectors, matrices), vectors @ matrices
    torch.testing.assert_close(found, expected)
    direction = torch.randn_like(expected)
    gradients = [torch.autograd.grad(each, (vectors, matrices), direction) for each in (found, expected)]
    torch.testing.assert_close(*gradients)


def test_autocast_casts_a_parameter_once(largest_made: Callable[[], Any]):
    """Autocast caches the cast of a parameter, but not that of a view, which every step of a decoder would repeat."""
    matrices, vectors = torch.nn.Parameter(torch.randn(1, 32, 32)), torch.randn(5, 1, 1, 32)
    with torch.autocast("cpu", torch.bfloat16):
        headwise_product(vectors, matrices)
        with largest_made() as largest:
            headwise_product(vectors, matrices)
    assert 0 < largest.numbers < matrices.numel()
