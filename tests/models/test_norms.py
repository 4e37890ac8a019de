"""ScaleNorm is one length times a direction, and LayerNorm on a GPU is the same function."""

import math

import pytest
import torch

from nmt.models.norms import LayerNorm, ScaleNorm


def test_every_vector_gets_the_learned_norm() -> None:
    torch.manual_seed(1)
    norm, x = ScaleNorm(7).double(), torch.randn(3, 5, 7, dtype=torch.double)
    found = norm(x)
    torch.testing.assert_close(found.norm(dim=-1), torch.full((3, 5), math.sqrt(7), dtype=torch.double))
    torch.testing.assert_close(found, math.sqrt(7) * torch.nn.functional.normalize(x, dim=-1))
    norm.length.data.fill_(2)
    torch.testing.assert_close(norm(x), 2 * found / math.sqrt(7))


def test_the_gradient_equals_finite_differences() -> None:
    norm = ScaleNorm(5).double()
    x = torch.randn(3, 5, dtype=torch.double, requires_grad=True)
    assert torch.autograd.gradcheck(norm, x)


def test_a_zero_vector_stays_zero() -> None:
    x = torch.zeros(2, 3, requires_grad=True)
    ScaleNorm(3)(x).sum().backward()
    assert x.grad is not None
    assert x.grad.isfinite().all()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_the_dtype_is_kept(dtype: torch.dtype) -> None:
    assert ScaleNorm(3)(torch.ones(2, 3, dtype=dtype)).dtype == dtype


def test_a_layer_norm_in_bfloat16_is_rounded_once() -> None:
    torch.manual_seed(1)
    norm, x = LayerNorm(7), torch.randn(3, 5, 7).bfloat16()
    with torch.no_grad():
        for parameter in norm.parameters():
            parameter.copy_(torch.randn(7).bfloat16())
        with torch.autocast("cpu", torch.bfloat16):
            found = norm.in_its_dtype(x)
        exact = torch.nn.functional.layer_norm(x.double(), (7,), norm.weight.double(), norm.bias.double(), norm.eps)
    assert found.dtype == torch.bfloat16
    # The result is rounded to bfloat16; before that, it is computed in float32 from numbers of about 1.
    half = torch.finfo(torch.bfloat16).eps / 2
    torch.testing.assert_close(found.double(), exact, rtol=half, atol=100 * torch.finfo(torch.float32).eps)
