from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from nmt.errors import Mistake
from nmt.kernels.dropout import Dropout


def test_rate_and_scale_hold_for_every_byte_of_the_random_words():
    torch.manual_seed(1)
    x = Dropout(0.25)(torch.ones(50_000, 8))
    assert x.unique().tolist() == pytest.approx([0, 1 / 0.75])
    rates = (x == 0).float().mean(dim=0)
    # Five standard errors of 50,000 draws.
    assert rates.tolist() == pytest.approx([0.25] * 8, abs=5 * (0.25 * 0.75 / 50_000) ** 0.5)


def test_a_small_rate_is_neither_zero_nor_a_multiple_of_itself():
    torch.manual_seed(1)
    assert 0.001 < (Dropout(0.0015)(torch.ones(1_000_000)) == 0).double().mean() < 0.002


def test_the_seed_determines_the_mask():
    torch.manual_seed(7)
    first = Dropout(0.5)(torch.ones(3, 5))
    torch.manual_seed(7)
    assert first.equal(Dropout(0.5)(torch.ones(3, 5)))


def test_the_gradient_passes_where_the_value_passes():
    x = torch.ones(101, requires_grad=True)
    y = Dropout(0.5)(x)
    y.sum().backward()
    assert x.grad.equal(y.detach())


@pytest.mark.parametrize("p", [0.25, 0.0, 0.0015], ids=["bytes", "none", "torch draws"])
def test_of_relu_equals_dropout_of_relu_except_for_the_scale(p: float):
    dropout, x = Dropout(p), torch.randn(40, 30, dtype=torch.double, requires_grad=True)

    def seeded(compute: Callable[[Tensor], Tensor]) -> tuple[Tensor, Tensor]:
        torch.manual_seed(3)
        result = compute(x + 0)
        return result, *torch.autograd.grad(result.square().sum(), x)

    def of_relu(rows: Tensor) -> Tensor:
        dropped, scale = dropout.of_relu(rows)
        return dropped * scale

    torch.testing.assert_close(seeded(of_relu), seeded(lambda rows: dropout(rows.relu())))


def test_of_relu_works_in_place():
    for dropout in (Dropout(0.25), Dropout(0.25).eval()):
        x = torch.randn(4, 3)
        dropped, scale = dropout.of_relu(x)
        assert dropped is x
        assert scale == (1 / 0.75 if dropout.training else 1)


def test_evaluation_and_rate_zero_return_the_input_unchanged():
    x = torch.randn(3, 5)
    assert Dropout(0.5).eval()(x) is x
    assert Dropout(0.0)(x) is x


def test_a_probability_out_of_range_is_refused():
    with pytest.raises(Mistake, match=r"dropout is 1\.5; it must be at least 0 and below 1"):
        Dropout(1.5)
