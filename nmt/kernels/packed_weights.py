"""Layers for search on a CPU, with weights in the layout that oneDNN multiplies fastest."""

import copy
from typing import Any, TypeVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

MIN_WEIGHTS = 2**17
"""Layers with fewer weights are at least as fast without packing (docs/lab_notebook.md)."""

_ROWS = 40
"""oneDNN chooses the layout for this number of input rows: eight sentences with five hypotheses each."""

Layer = TypeVar("Layer", bound=nn.Module)


class PackedLinear(nn.Linear):
    """A linear layer that also holds a packed copy of its weight, which it uses whenever gradients are disabled.

    A search step has few input rows, so a product takes about as long as reading the weights, and torch's float32
    product rearranges the weights at every call. The output equals that of `layer` up to the rounding of sums. The
    packed copy is not a parameter, and later changes to the weight do not reach it. A deep copy is a plain linear
    layer.
    """

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__(layer.in_features, layer.out_features, bias=layer.bias is not None, device="meta")
        _with_parameters(self, layer, dict(layer.named_parameters()))
        self._packed = _pack(layer.weight)

    def forward(self, input: Float[Tensor, "*rows in_features"]) -> Float[Tensor, "*rows out_features"]:
        if torch.is_grad_enabled():
            return super().forward(input)
        return _product(input, self._packed, self.bias)

    def __deepcopy__(self, memo: dict[int, Any]) -> nn.Linear:
        plain = nn.Linear(self.in_features, self.out_features, bias=self.bias is not None, device="meta")
        return _with_parameters(plain, self, copy.deepcopy(dict(self.named_parameters()), memo))


class PackedLSTMCell(nn.LSTMCell):
    """An LSTM cell with packed weights; see `PackedLinear`."""

    def __init__(self, cell: nn.LSTMCell) -> None:
        super().__init__(cell.input_size, cell.hidden_size, bias=cell.bias, device="meta")
        _with_parameters(self, cell, dict(cell.named_parameters()))
        self._packed = _pack(cell.weight_ih), _pack(cell.weight_hh)

    def forward(
        self,
        input: Float[Tensor, "rows in_features"],
        hx: tuple[Float[Tensor, "rows hidden"], Float[Tensor, "rows hidden"]] | None = None,
    ) -> tuple[Float[Tensor, "rows hidden"], Float[Tensor, "rows hidden"]]:
        if torch.is_grad_enabled() or hx is None:
            return super().forward(input, hx)
        h, c = hx
        of_input, of_state = self._packed
        gates = _product(input, of_input, self.bias_ih) + _product(h, of_state, self.bias_hh)
        i, f, g, o = gates.chunk(4, dim=-1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        return o.sigmoid() * c.tanh(), c

    def __deepcopy__(self, memo: dict[int, Any]) -> nn.LSTMCell:
        plain = nn.LSTMCell(self.input_size, self.hidden_size, bias=self.bias, device="meta")
        return _with_parameters(plain, self, copy.deepcopy(dict(self.named_parameters()), memo))


class PackedGRUCell(nn.GRUCell):
    """A GRU cell with packed weights; see `PackedLinear`."""

    def __init__(self, cell: nn.GRUCell) -> None:
        super().__init__(cell.input_size, cell.hidden_size, bias=cell.bias, device="meta")
        _with_parameters(self, cell, dict(cell.named_parameters()))
        self._packed = _pack(cell.weight_ih), _pack(cell.weight_hh)

    def forward(
        self, input: Float[Tensor, "rows in_features"], hx: Float[Tensor, "rows hidden"] | None = None
    ) -> Float[Tensor, "rows hidden"]:
        if torch.is_grad_enabled() or hx is None:
            return super().forward(input, hx)
        of_input, of_state = self._packed
        r_input, z_input, n_input = _product(input, of_input, self.bias_ih).chunk(3, dim=-1)
        r_state, z_state, n_state = _product(hx, of_state, self.bias_hh).chunk(3, dim=-1)
        z = (z_input + z_state).sigmoid()
        n = (n_input + (r_input + r_state).sigmoid() * n_state).tanh()
        return n + z * (hx - n)

    def __deepcopy__(self, memo: dict[int, Any]) -> nn.GRUCell:
        plain = nn.GRUCell(self.input_size, self.hidden_size, bias=self.bias, device="meta")
        return _with_parameters(plain, self, copy.deepcopy(dict(self.named_parameters()), memo))


def pack_weights(model: nn.Module) -> None:
    """Replaces the large linear layers and recurrent cells of a model on a CPU with packed ones.

    The weights of the model must not change afterwards. Does nothing if oneDNN cannot multiply by packed weights of the
    model's dtype.
    """
    packed: dict[nn.Module, nn.Module] = {}
    for name, layer in list(model.named_modules(remove_duplicate=False)):
        if layer not in packed:
            if isinstance(layer, nn.Linear) and _can_pack(layer.weight):
                packed[layer] = PackedLinear(layer)
            elif isinstance(layer, nn.LSTMCell) and _can_pack(layer.weight_hh):
                packed[layer] = PackedLSTMCell(layer)
            elif isinstance(layer, nn.GRUCell) and _can_pack(layer.weight_hh):
                packed[layer] = PackedGRUCell(layer)
        if layer in packed:
            model.set_submodule(name, packed[layer])


def _can_pack(weight: Tensor) -> bool:
    if weight.device.type != "cpu" or weight.numel() < MIN_WEIGHTS or not torch.backends.mkldnn.is_available():
        return False
    if weight.dtype == torch.bfloat16:
        return torch.ops.mkldnn._is_mkldnn_bf16_supported()
    return weight.dtype == torch.float32


# torch has no public functions that pack weights and multiply by them. Its compiler generates calls to these two.


def _pack(weight: Tensor) -> Tensor:
    return torch.ops.mkldnn._reorder_linear_weight(weight.detach(), _ROWS)


def _product(x: Tensor, packed: Tensor, bias: Tensor | None) -> Tensor:
    return torch.ops.mkldnn._linear_pointwise(x, packed, bias, "none", [], "")


def _with_parameters(into: Layer, layer: nn.Module, parameters: dict[str, nn.Parameter]) -> Layer:
    """Gives `into` these parameters, and the mode of `layer` (training or evaluation), and returns it."""
    for name, parameter in parameters.items():
        setattr(into, name, parameter)
    return into.train(layer.training)
