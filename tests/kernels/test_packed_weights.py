"""Packed layers and cells equal the plain ones."""

import copy

import pytest
import torch
from torch import Tensor, nn

from nmt.kernels.packed_weights import MIN_WEIGHTS, PackedGRUCell, PackedLinear, PackedLSTMCell, pack_weights

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


CELLS = [(nn.LSTMCell, PackedLSTMCell), (nn.GRUCell, PackedGRUCell)]


def states(result: Tensor | tuple[Tensor, Tensor]) -> list[Tensor]:
    return list(result) if isinstance(result, tuple) else [result]


@pytest.mark.parametrize("rows", [1, 5, 321])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("kind", "packed_kind"), CELLS)
@torch.inference_mode()
def test_a_cell_is_its_formula_up_to_the_rounding_of_its_sums(kind, packed_kind, bias: bool, rows: int):
    torch.manual_seed(1)
    cell = kind(NARROW, NARROW, bias=bias)
    x, h, c = torch.randn(3, rows, NARROW).unbind()
    given = (h, c) if kind is nn.LSTMCell else h
    exact_given = (h.double(), c.double()) if kind is nn.LSTMCell else h.double()
    exact = states(copy.deepcopy(cell).double()(x.double(), exact_given))

    products = [(x.double(), cell.weight_ih.double()), (h.double(), cell.weight_hh.double())]
    sums = sum(inputs.abs() @ weight.abs().T for inputs, weight in products)
    if bias:
        sums = sums + cell.bias_ih.double().abs() + cell.bias_hh.double().abs()
    # A gate is a sum of 2 NARROW products and two biases. The slopes of tanh and the sigmoid are at most 1. An error of
    # a gate is multiplied by at most an old state, by 1, or by the GRU's product with its old state.
    roundings = (2 * NARROW + 12) * torch.finfo(torch.float32).eps / 2
    gates = (sums + 1).unflatten(-1, (-1, NARROW)).sum(dim=-2) * roundings
    largest = max(each.abs().max().item() for each in (h, c, products[1][0] @ products[1][1].T))
    for found, wanted in zip(states(packed_kind(cell)(x, given)), exact, strict=True):
        assert found.dtype == torch.float32
        assert ((found.double() - wanted).abs() <= (1 + largest) * gates).all()


@pytest.mark.parametrize(("kind", "packed_kind"), CELLS)
def test_a_cell_with_gradients_is_the_plain_cell_and_so_is_a_deep_copy(kind, packed_kind):
    cell = kind(NARROW, NARROW)
    packed, x = packed_kind(cell.eval()), torch.randn(3, NARROW, requires_grad=True)
    results = [states(net(x))[0] for net in (packed, cell)]
    assert torch.equal(*results)
    ours, theirs = (torch.autograd.grad(each.sum(), [x, *cell.parameters()]) for each in results)
    assert all(torch.equal(one, other) for one, other in zip(ours, theirs, strict=True))
    copied = copy.deepcopy(packed)
    assert type(copied) is kind
    assert not copied.training
    assert {*copied.state_dict()} == {*cell.state_dict()}
    assert all(torch.equal(value, cell.state_dict()[name]) for name, value in copied.state_dict().items())
    assert copied.weight_ih is not cell.weight_ih


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
    model["lstm"], model["gru"] = nn.LSTMCell(NARROW, NARROW), nn.GRUCell(NARROW, NARROW)
    before = {name: id(value) for name, value in model.named_parameters(remove_duplicate=False)}
    pack_weights(model)
    kinds = {name: type(part) for name, part in model.items()}
    assert kinds == {
        "table": nn.Embedding,
        **dict.fromkeys(("output", "one", "other"), PackedLinear),
        "small": nn.Linear,
        "lstm": PackedLSTMCell,
        "gru": PackedGRUCell,
    }
    assert model["one"] is model["other"]
    assert {name: id(value) for name, value in model.named_parameters(remove_duplicate=False)} == before
    assert {*model.state_dict()} == {*before}


def test_packing_again_follows_a_conversion():
    model = nn.Sequential(layer())
    pack_weights(model)
    with torch.no_grad():
        model[0].weight.mul_(2)
    pack_weights(model)
    x = torch.randn(5, NARROW)
    with torch.inference_mode():
        assert ((model(x) - 2 * layer()(x) + layer().bias).abs() <= 4 * limit(layer(), x)).all()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16])
def test_other_numbers_are_left_alone(dtype: torch.dtype):
    model = nn.Sequential(layer(dtype=dtype))
    pack_weights(model)
    assert type(model[0]) is nn.Linear
