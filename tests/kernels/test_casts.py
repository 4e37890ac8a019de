"""The casts that happen under each kind of autocast."""

import pytest
import torch

from nmt.kernels.casts import cast_for_products, cast_residual


@pytest.mark.parametrize(
    ("autocast", "product", "residual"),
    [
        (None, torch.float32, torch.float32),
        (torch.bfloat16, torch.bfloat16, torch.bfloat16),
        (torch.float16, torch.float16, torch.float32),
    ],
)
def test_products_follow_autocast_and_residual_sums_only_to_bfloat16(
    autocast: torch.dtype | None, product: torch.dtype, residual: torch.dtype
):
    x = torch.randn(2, 3, 5)
    with torch.autocast("cpu", autocast, enabled=autocast is not None):
        assert cast_for_products(x).dtype == product
        assert cast_residual(x).dtype == residual
        assert cast_for_products(x).equal(x.to(product))
        assert cast_residual(x).equal(x.to(residual))
