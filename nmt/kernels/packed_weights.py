"""Layers for inference on a CPU, with weights also in the layout that oneDNN multiplies fastest."""

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

MIN_WEIGHTS = 2**17
"""Matrices with fewer weights are multiplied as fast, or faster, without packing (docs/lab_notebook.md)."""

_ROWS = 40
"""The number of input rows for which oneDNN chooses the layout: eight sentences with five hypotheses each."""


class PackedWeight:
    """A packed copy of a weight matrix, which is used only while the weight stays as it was.

    A product with few rows, as in a search step, takes about as long as reading the weights, and torch's float32
    product brings them into another layout at every call. torch has no public function that multiplies packed weights;
    the functions called here are the ones to which its compiler translates linear layers.
    """

    def __init__(self, weight: Float[Tensor, "outputs inputs"]) -> None:
        self._packed = torch.ops.mkldnn._reorder_linear_weight(weight.detach(), _ROWS)
        self._state = _state(weight)

    @staticmethod
    def suits(weight: Tensor) -> bool:
        """Whether a weight is large enough, and oneDNN can multiply packed weights of its dtype on this machine."""
        onednn = torch.backends.mkldnn
        if (
            weight.device.type != "cpu"
            or weight.numel() < MIN_WEIGHTS
            or not (onednn.is_available() and onednn.enabled)
        ):
            return False
        if weight.dtype == torch.bfloat16:
            return torch.ops.mkldnn._is_mkldnn_bf16_supported()
        return weight.dtype == torch.float32

    def product(
        self, x: Float[Tensor, "*rows inputs"], weight: Float[Tensor, "outputs inputs"], bias: Tensor | None
    ) -> Float[Tensor, "*rows outputs"]:
        """x W^T + b up to the rounding of its sums; the plain product with gradients, and if W has changed."""
        plain = torch.is_grad_enabled() or torch.is_autocast_enabled("cpu") or x.dtype != weight.dtype
        if plain or _state(weight) != self._state:
            return F.linear(x, weight, bias)
        return torch.ops.mkldnn._linear_pointwise(x, self._packed, bias, "none", [], "")


class PackedLinear(nn.Linear):
    """A linear layer with a packed weight, which shares the parameters of `layer`.

    A deep copy, or one that was pickled, is a plain layer.
    """

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__(layer.in_features, layer.out_features, bias=layer.bias is not None, device="meta")
        share_parameters(self, dict(layer.named_parameters()), layer.training)
        self._packed = PackedWeight(layer.weight)

    def forward(self, input: Float[Tensor, "*rows inputs"]) -> Float[Tensor, "*rows outputs"]:
        return self._packed.product(input, self.weight, self.bias)

    def __reduce__(self) -> tuple[Any, ...]:
        return _as_plain(self, nn.Linear, self.in_features, self.out_features)


class PackedLSTMCell(nn.LSTMCell):
    """An LSTM cell with packed weights, otherwise like `PackedLinear`."""

    def __init__(self, cell: nn.LSTMCell) -> None:
        super().__init__(cell.input_size, cell.hidden_size, bias=cell.bias, device="meta")
        share_parameters(self, dict(cell.named_parameters()), cell.training)
        self._packed = PackedWeight(cell.weight_ih), PackedWeight(cell.weight_hh)

    def forward(
        self,
        input: Float[Tensor, "rows inputs"],
        hx: tuple[Float[Tensor, "rows hidden"], Float[Tensor, "rows hidden"]] | None = None,
    ) -> tuple[Float[Tensor, "rows hidden"], Float[Tensor, "rows hidden"]]:
        if hx is None or torch.is_grad_enabled():
            return super().forward(input, hx)
        h, c = hx
        of_input, of_state = self._packed
        from_input = of_input.product(input, self.weight_ih, self.bias_ih)
        i, f, g, o = (from_input + of_state.product(h, self.weight_hh, self.bias_hh)).chunk(4, dim=-1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        return o.sigmoid() * c.tanh(), c

    def __reduce__(self) -> tuple[Any, ...]:
        return _as_plain(self, nn.LSTMCell, self.input_size, self.hidden_size)


class PackedGRUCell(nn.GRUCell):
    """A GRU cell with packed weights, otherwise like `PackedLinear`."""

    def __init__(self, cell: nn.GRUCell) -> None:
        super().__init__(cell.input_size, cell.hidden_size, bias=cell.bias, device="meta")
        share_parameters(self, dict(cell.named_parameters()), cell.training)
        self._packed = PackedWeight(cell.weight_ih), PackedWeight(cell.weight_hh)

    def forward(
        self, input: Float[Tensor, "rows inputs"], hx: Float[Tensor, "rows hidden"] | None = None
    ) -> Float[Tensor, "rows hidden"]:
        if hx is None or torch.is_grad_enabled():
            return super().forward(input, hx)
        of_input, of_state = self._packed
        r_input, z_input, n_input = of_input.product(input, self.weight_ih, self.bias_ih).chunk(3, dim=-1)
        r_state, z_state, n_state = of_state.product(hx, self.weight_hh, self.bias_hh).chunk(3, dim=-1)
        z = (z_input + z_state).sigmoid()
        n = (n_input + (r_input + r_state).sigmoid() * n_state).tanh()
        return n + z * (hx - n)

    def __reduce__(self) -> tuple[Any, ...]:
        return _as_plain(self, nn.GRUCell, self.input_size, self.hidden_size)


def pack_weights(model: nn.Module) -> None:
    """Replaces the large linear layers and recurrent cells inside a model with packed ones.

    Subclasses of these layers are left alone. Needs as much additional memory as the packed weights.
    """
    packed: dict[nn.Module, nn.Module] = {}
    for name, layer in list(model.named_modules(remove_duplicate=False)):
        if layer not in packed:
            if type(layer) in (nn.Linear, PackedLinear) and PackedWeight.suits(layer.weight):
                packed[layer] = PackedLinear(layer)
            elif type(layer) in (nn.LSTMCell, PackedLSTMCell) and _both_suit(layer):
                packed[layer] = PackedLSTMCell(layer)
            elif type(layer) in (nn.GRUCell, PackedGRUCell) and _both_suit(layer):
                packed[layer] = PackedGRUCell(layer)
        if layer in packed and name:
            model.set_submodule(name, packed[layer])


def _as_plain(layer: nn.Module, *kind_and_sizes: Any) -> tuple[Any, ...]:
    """What `__reduce__` returns: a function and its arguments."""
    return plain_layer, (*kind_and_sizes, dict(layer.named_parameters()), layer.training)


def plain_layer(
    kind: type[nn.Linear] | type[nn.LSTMCell] | type[nn.GRUCell],
    inputs: int,
    outputs: int,
    parameters: dict[str, nn.Parameter],
    training: bool,
) -> nn.Module:
    """The layer of that kind with these parameters."""
    layer = kind(inputs, outputs, bias="bias" in parameters or "bias_ih" in parameters, device="meta")
    share_parameters(layer, parameters, training)
    return layer


def share_parameters(layer: nn.Module, parameters: dict[str, nn.Parameter], training: bool) -> None:
    """Gives a layer these parameters, and puts it into training or evaluation mode."""
    for name, parameter in parameters.items():
        setattr(layer, name, parameter)
    layer.train(training)


def _both_suit(cell: nn.RNNCellBase) -> bool:
    return PackedWeight.suits(cell.weight_ih) and PackedWeight.suits(cell.weight_hh)


def _state(weight: Tensor) -> tuple[Any, ...]:
    """What differs after an optimizer step, loading other weights, and a conversion."""
    return weight.data_ptr(), None if weight.is_inference() else weight._version, weight.dtype, weight.device
