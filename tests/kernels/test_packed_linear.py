"""A packed linear layer equals the plain one."""

import copy

import pytest
import torch
from torch import Tensor, nn

from nmt.kernels.packed_linear import MIN_WEIGHTS, PackedLinear, pack_linear_layers

WIDE, NARROW = 512, 256
assert WIDE * NARROW >= MIN_WEIGHTS

pytestmark = pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="this build of torch has no oneDNN")


def layer(bias: bool = True, dtype: torch.dtype = torch.float32) -> nn.Linear:
    torch.manual_seed(1)
    return nn.Linear(NARROW, WIDE, bias=bias).to(dtype)


def limit(plain: nn.Linear, x: Tensor) -> Tensor:
    """The largest rounding error of a product that sums NARROW terms and a bias in float32, and rounds to its dtype."""
    weight, bias = plain.weight.double().abs(), 0 if plain.bias is None else plain.bias.double().abs()
    sums = x.double().abs() @ weight.T + bias
    return (NARROW + 1) * torch.finfo(torch.float32).eps * sums + torch.finfo(plain.weight.dtype).eps * sums


@pytest.mark.parametrize("rows", [(1,), (5,), (8, 5), (321,), (0,)])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@torch.inference_mode()
def test_it_is_the_product_up_to_the_rounding_of_its_sums(rows: tuple[int, ...], bias: bool, dtype: torch.dtype):
    if dtype == torch.bfloat16 and not torch.ops.mkldnn._is_mkldnn_bf16_supported():
        pytest.skip("oneDNN cannot multiply bfloat16 matrices on this CPU")
    plain = layer(bias, dtype)
    x = torch.randn(*rows, NARROW).to(dtype)
    found = PackedLinear(plain)(x)
    exact = x.double() @ plain.weight.double().T + (plain.bias.double() if bias else 0)
    assert found.dtype == dtype
    assert found.shape == exact.shape
    assert ((found.double() - exact).abs() <= limit(plain, x)).all()


@torch.inference_mode()
def test_its_input_need_not_be_contiguous():
    plain, x = layer(), torch.randn(4, 3, NARROW + 8)[..., 4:-4]
    assert ((PackedLinear(plain)(x) - plain(x)).abs() <= 2 * limit(plain, x)).all()


def test_with_gradients_it_is_the_plain_layer():
    plain = layer()
    packed, x = PackedLinear(plain), torch.randn(3, NARROW, requires_grad=True)
    wanted = (x, plain.weight, plain.bias)
    assert torch.equal(packed(x), plain(x))
    for ours, theirs in zip(*(torch.autograd.grad(net(x).sum(), wanted) for net in (packed, plain)), strict=True):
        assert torch.equal(ours, theirs)


def test_a_deep_copy_is_a_plain_layer_with_weights_of_its_own():
    packed = PackedLinear(layer().eval())
    copied = copy.deepcopy(packed)
    assert type(copied) is nn.Linear
    assert not copied.training
    assert torch.equal(copied.weight, packed.weight)
    assert copied.weight is not packed.weight
    assert torch.equal(copied.bias, packed.bias)
    assert type(copy.deepcopy(PackedLinear(layer(bias=False)))) is nn.Linear


def test_large_layers_of_a_model_are_packed_and_stay_the_same_parameters():
    table, shared = nn.Embedding(WIDE, NARROW), layer()
    output = nn.Linear(NARROW, WIDE, bias=False)
    output.weight = table.weight
    model = nn.ModuleDict({"table": table, "output": output, "one": shared, "other": shared, "small": nn.Linear(8, 8)})
    before = {name: id(value) for name, value in model.named_parameters(remove_duplicate=False)}
    pack_linear_layers(model)
    assert {name for name, part in model.items() if isinstance(part, PackedLinear)} == {"output", "one", "other"}
    assert model["one"] is model["other"]
    assert {name: id(value) for name, value in model.named_parameters(remove_duplicate=False)} == before
    assert {*model.state_dict()} == {*before}


def test_packing_again_follows_a_conversion():
    model = nn.Sequential(layer())
    pack_linear_layers(model)
    with torch.no_grad():
        model[0].weight.mul_(2)
    pack_linear_layers(model)
    x = torch.randn(5, NARROW)
    with torch.inference_mode():
        assert ((model(x) - 2 * layer()(x) + layer().bias).abs() <= 4 * limit(layer(), x)).all()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16])
def test_other_numbers_are_left_alone(dtype: torch.dtype):
    model = nn.Sequential(layer(dtype=dtype))
    pack_linear_layers(model)
    assert type(model[0]) is nn.Linear
