"""Packed layers and cells equal the plain ones."""

import copy
import pickle
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrizations

from nmt.kernels import packed_weights
from nmt.kernels.packed_weights import PackedGRUCell, PackedLinear, PackedLSTMCell, PackedWeight, pack_weights

INPUTS, OUTPUTS = 24, 40
LAYERS = {PackedLinear: nn.Linear, PackedLSTMCell: nn.LSTMCell, PackedGRUCell: nn.GRUCell}
KINDS = pytest.mark.parametrize("kind", LAYERS, ids=lambda kind: kind.__name__)

pytestmark = pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="this build of torch has no oneDNN")


@pytest.fixture(autouse=True)
def _every_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed_weights, "MIN_WEIGHTS", 0)


def layer(kind: type, dtype: torch.dtype = torch.float32, bias: bool = True) -> nn.Module:
    torch.manual_seed(1)
    with torch.inference_mode(False):
        return LAYERS[kind](INPUTS, OUTPUTS, bias=bias).to(dtype).eval()


def inputs(kind: type, rows: tuple[int, ...] = (3,), dtype: torch.dtype = torch.float32) -> list[Tensor]:
    """The input of a layer and, for a cell, its old states."""
    torch.manual_seed(2)
    states = {PackedLinear: 0, PackedLSTMCell: 2, PackedGRUCell: 1}[kind]
    return [torch.randn(*rows, size).to(dtype) for size in (INPUTS, *[OUTPUTS] * states)]


def results(net: nn.Module, given: list[Tensor]) -> list[Tensor]:
    """The output, or the new states."""
    x, *states = given
    found = net(x, tuple(states)) if len(states) == 2 else net(x, *states)
    return list(found) if isinstance(found, tuple) else [found]


def all_equal(ours: list[Tensor], theirs: list[Tensor]) -> bool:
    return all(torch.equal(one, other) for one, other in zip(ours, theirs, strict=True))


def largest_error(plain: nn.Module, given: list[Tensor]) -> Tensor:
    """The largest rounding error of each output or new state of a layer."""
    parameters, is_cell = [each.detach() for each in plain.parameters()], len(given) > 1
    weights, biases = ([each.double().abs() for each in parameters if each.dim() == axes] for axes in (2, 1))
    sums = sum(x.double().abs() @ weight.T for x, weight in zip(given, weights, strict=False)) + sum(biases)
    # They have INPUTS or OUTPUTS products and a bias, in float32, and are then rounded to the dtype.
    in_float32, rounding = (torch.finfo(dtype).eps / 2 for dtype in (torch.float32, given[0].dtype))
    error = sums * ((INPUTS + OUTPUTS + 2) * in_float32 + 2 * rounding)
    if is_cell and len(sums):
        # A state is made by at most ten roundings of numbers that are no larger than an old state, 1, or the GRU's
        # product with its old state, and the slopes of tanh and the sigmoid are at most 1.
        error = (error + 10 * rounding).unflatten(-1, (-1, OUTPUTS)).sum(dim=-2)
        product = given[1].double() @ parameters[1].double().T
        error = error * (1 + max(each.abs().max().item() for each in (*given[1:], product)))
    return error[..., :OUTPUTS]


@pytest.mark.parametrize("rows", [(1,), (5,), (321,), (0,)])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@KINDS
@torch.inference_mode()
def test_it_is_the_formula_up_to_its_roundings(kind: type, dtype: torch.dtype, bias: bool, rows: tuple[int, ...]):
    plain = layer(kind, dtype, bias)
    if not PackedWeight.can_pack(next(plain.parameters())):
        pytest.skip("oneDNN cannot multiply bfloat16 matrices on this CPU")
    given = inputs(kind, rows, dtype)
    found = results(kind(plain), given)
    exact = results(copy.deepcopy(plain).double(), [each.double() for each in given])
    error = largest_error(plain, given)
    for ours, wanted in zip(found, exact, strict=True):
        assert ours.dtype == dtype
        assert ours.shape == wanted.shape
        assert ((ours.double() - wanted).abs() <= error).all()


@torch.inference_mode()
def test_the_packed_weight_is_what_is_multiplied(monkeypatch: pytest.MonkeyPatch):
    """Otherwise the tests here would compare the plain layer with itself."""
    monkeypatch.setattr(packed_weights.F, "linear", None)
    for cell in (nn.LSTMCell, nn.GRUCell):
        monkeypatch.setattr(cell, "forward", None)
    for kind in LAYERS:
        results(kind(layer(kind)), inputs(kind))


@torch.inference_mode()
def test_rows_may_have_several_axes_and_need_not_be_contiguous():
    plain, x = layer(PackedLinear), torch.randn(4, 3, INPUTS + 8)[..., 4:-4]
    assert torch.equal(PackedLinear(plain)(x), PackedLinear(plain)(x.contiguous().flatten(0, 1)).unflatten(0, (4, 3)))


@KINDS
def test_with_gradients_it_is_the_plain_layer(kind: type):
    plain = layer(kind)
    packed, given = kind(plain), [each.requires_grad_() for each in inputs(kind)]
    ours, theirs = (results(net, given) for net in (packed, plain))
    assert all_equal(ours, theirs)
    wanted = [*given, *plain.parameters()]
    gradients = [torch.autograd.grad(sum(each.sum() for each in found), wanted) for found in (ours, theirs)]
    assert all_equal(*gradients)


def step(net: nn.Module) -> None:
    optimizer = torch.optim.SGD(net.parameters(), lr=0.5)
    results(net, inputs(kind_of(net)))[0].sum().backward()
    optimizer.step()


def load(net: nn.Module) -> None:
    net.load_state_dict({name: torch.randn_like(value) for name, value in net.state_dict().items()})


def kind_of(net: nn.Module) -> type:
    return next(kind for kind in LAYERS if isinstance(net, kind))


@pytest.mark.parametrize("change", [step, load, nn.Module.double, nn.Module.bfloat16])
@KINDS
def test_it_follows_its_weights(kind: type, change: Callable[[nn.Module], object]):
    packed = kind(layer(kind))
    change(packed)
    given = inputs(kind, dtype=next(packed.parameters()).dtype)
    with torch.inference_mode():
        # A deep copy is a plain layer with the weights as they are now.
        exact = results(copy.deepcopy(packed).double(), [each.double() for each in given])
        error = largest_error(packed, given)
        for ours, wanted in zip(results(packed, given), exact, strict=True):
            assert ((ours.double() - wanted).abs() <= error).all()


@KINDS
@torch.inference_mode()
def test_under_autocast_it_is_the_plain_layer(kind: type):
    plain = layer(kind)
    with torch.autocast("cpu", torch.bfloat16):
        ours, theirs = (results(net, inputs(kind)) for net in (kind(plain), plain))
    for found, wanted in zip(ours, theirs, strict=True):
        assert found.dtype == wanted.dtype
        # Each is within the largest error of the exact result, with one more rounding, of the input and the weights.
        assert ((found - wanted).abs() <= 4 * largest_error(plain, [x.bfloat16() for x in inputs(kind)])).all()


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda net: pickle.loads(pickle.dumps(net))])
@pytest.mark.parametrize("bias", [True, False])
@KINDS
def test_a_copy_is_a_plain_layer_with_weights_of_its_own(kind: type, bias: bool, copied: Callable):
    packed = kind(layer(kind, bias=bias))
    found = copied(packed)
    assert type(found) is LAYERS[kind]
    assert not found.training
    assert [*found.state_dict()] == [*packed.state_dict()]
    assert all_equal([*found.parameters()], [*packed.parameters()])
    assert not {id(each) for each in found.parameters()} & {id(each) for each in packed.parameters()}


class Doubled(nn.Linear):
    def forward(self, input: Tensor) -> Tensor:
        return 2 * super().forward(input)


def test_layers_of_a_model_are_packed_and_keep_their_parameters():
    table, shared = nn.Embedding(OUTPUTS, INPUTS), layer(PackedLinear)
    output = nn.Linear(INPUTS, OUTPUTS, bias=False)
    output.weight = table.weight
    parts: dict[str, nn.Module] = {"table": table, "output": output, "one": shared, "other": shared}
    parts |= {"lstm": layer(PackedLSTMCell), "gru": layer(PackedGRUCell), "doubled": Doubled(INPUTS, OUTPUTS)}
    parts["normed"] = parametrizations.weight_norm(nn.Linear(INPUTS, OUTPUTS))
    parts["hooked"] = layer(PackedLinear)
    parts["hooked"].register_forward_hook(lambda net, given, found: 2 * found)
    model = nn.ModuleDict(parts)
    before = {name: id(value) for name, value in model.named_parameters(remove_duplicate=False)}
    pack_weights(model)
    packed = {name: type(part) for name, part in model.items() if type(part) in LAYERS}
    assert packed == {
        **dict.fromkeys(("output", "one", "other"), PackedLinear),
        "lstm": PackedLSTMCell,
        "gru": PackedGRUCell,
    }
    assert model["one"] is model["other"]
    assert {name: id(value) for name, value in model.named_parameters(remove_duplicate=False)} == before
    copied = copy.deepcopy(model)
    assert copied["output"].weight is copied["table"].weight


def test_a_conversion_there_and_back_is_noticed():
    packed = PackedLinear(layer(PackedLinear))
    x = inputs(PackedLinear)[0]
    packed.bfloat16().float()
    with torch.inference_mode():
        assert torch.equal(packed(x), torch.nn.functional.linear(x, packed.weight, packed.bias))


def test_small_layers_and_other_numbers_are_left_alone(monkeypatch: pytest.MonkeyPatch):
    for dtype in (torch.float64, torch.float16):
        assert not PackedWeight.can_pack(torch.zeros(9, 9, dtype=dtype))
    assert not PackedWeight.can_pack(torch.zeros(9, 9, device="meta"))
    monkeypatch.setattr(packed_weights, "MIN_WEIGHTS", 82)
    assert not PackedWeight.can_pack(torch.zeros(9, 9))


def test_without_onednn_nothing_is_packed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(torch.backends.mkldnn, "enabled", False)
    assert not PackedWeight.can_pack(torch.zeros(9, 9))
