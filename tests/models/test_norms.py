"""ScaleNorm is one length times a direction."""

import math

import pytest
import torch

from nmt.models.norms import ScaleNorm


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
