"""Layers for search on a CPU, with weights in the layout that oneDNN multiplies fastest."""

import copy
from typing import Any, TypeVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

MIN_WEIGHTS = 2**17
"""Smaller layers are as fast without packing, or faster (docs/lab_notebook.md)."""

_ROWS = 40
"""The number of input rows for which oneDNN chooses the layout: eight sentences with five hypotheses each."""

Layer = TypeVar("Layer", bound=nn.Module)


class PackedLinear(nn.Linear):
    """A linear layer that also holds a packed copy of its weight, which it uses whenever gradients are disabled.

    A search step has few rows, so a product takes about as long as reading the weights, and torch's float32 product
    rearranges them at every call. The result is that of `layer` up to the rounding of its sums. The packed copy is not
    a parameter, and does not follow later changes of the weight. A deep copy is a plain linear layer.
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
    """An LSTM cell with packed weights, like `PackedLinear`."""

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
    """A GRU cell with packed weights, like `PackedLinear`."""

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
    """Replaces the large linear layers and recurrent cells of a model on a CPU by packed ones.

    Only for a model whose weights do not change any more. Does nothing where oneDNN cannot multiply packed weights of
    the model's dtype.
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


# torch has no public function that multiplies packed weights. Its compiler generates calls of these two.


def _pack(weight: Tensor) -> Tensor:
    return torch.ops.mkldnn._reorder_linear_weight(weight.detach(), _ROWS)


def _product(x: Tensor, packed: Tensor, bias: Tensor | None) -> Tensor:
    return torch.ops.mkldnn._linear_pointwise(x, packed, bias, "none", [], "")


def _with_parameters(into: Layer, layer: nn.Module, parameters: dict[str, nn.Parameter]) -> Layer:
    """`into` with these parameters and the mode, training or evaluation, of `layer`."""
    for name, parameter in parameters.items():
        setattr(into, name, parameter)
    return into.train(layer.training)
