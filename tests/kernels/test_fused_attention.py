"""Torch's fused attention equals the formula, for every mask."""

from typing import Any

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from nmt.kernels import fused_attention


@pytest.mark.parametrize("shape", [(7,), (1, 7), (4, 7), (2, 1, 1, 7), (2, 3, 4, 7)])
def test_it_equals_the_formula_for_any_mask_that_broadcasts(shape: tuple[int, ...]):
    """Queries without allowed keys get zeros."""
    torch.manual_seed(3)
    queries, keys, values = (torch.randn(2, 3, n, 5, dtype=torch.float64) for n in (4, 7, 7))
    mask = torch.rand(shape) < 0.6
    if len(shape) == 4:
        mask[1, 0, 0] = False
    found = fused_attention.inner_product_context(queries, keys, values, mask, 0.0)
    scores = (queries @ keys.transpose(-2, -1)).masked_fill(~mask, -torch.inf)
    torch.testing.assert_close(found, scores.softmax(dim=-1).nan_to_num(0) @ values)


def test_nan_from_a_kernel_becomes_zero_if_no_key_is_allowed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(
        fused_attention.F, "scaled_dot_product_attention", lambda q, *_, **__: torch.full_like(q, torch.nan)
    )
    queries, mask = torch.randn(1, 1, 2, 3), torch.zeros(1, 1, 2, 5, dtype=torch.bool)
    keys = torch.randn(1, 1, 5, 3)
    assert fused_attention.inner_product_context(queries, keys, keys, mask, 0.0).eq(0).all()


@pytest.mark.parametrize(("number", "gradients", "fused"), [(2, True, True), (1, True, False), (1, False, True)])
def test_on_a_gpu_a_single_query_with_gradients_uses_the_formula(number: int, gradients: bool, fused: bool):
    with FakeTensorMode(), torch.set_grad_enabled(gradients):
        queries = torch.empty(2, 3, number, 4, device="cuda:0")
        assert fused_attention.prefers_fused(queries, queries, 0.1) == fused


def test_on_a_gpu_cudnn_is_left_out_while_attention_is_computed(monkeypatch: pytest.MonkeyPatch):
    class ReachedError(Exception):
        """torch can compute little more for a GPU that is not there."""

    def kernel(*_: Any, **__: Any) -> None:
        raise ReachedError(torch.backends.cuda.cudnn_sdp_enabled())

    monkeypatch.setattr(fused_attention.F, "scaled_dot_product_attention", kernel)
    before = torch.backends.cuda.cudnn_sdp_enabled()
    for device, expected in (("cpu", before), ("cuda:0", False)):
        with FakeTensorMode(), torch.no_grad():
            queries, mask = torch.empty(1, 1, 2, 3, device=device), torch.ones(2, dtype=torch.bool, device=device)
            with pytest.raises(ReachedError, match=str(expected)):
                fused_attention.inner_product_context(queries, queries, queries, mask, 0.0)
        assert torch.backends.cuda.cudnn_sdp_enabled() == before
