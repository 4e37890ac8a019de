"""Layers for inference on a CPU that also keep their weights in the layout that oneDNN multiplies fastest."""

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

MIN_WEIGHTS = 2**16
"""Smaller matrices are not packed. Those of this size gain little (docs/lab_notebook.md)."""

_ROWS = 40
"""The number of input rows for which oneDNN chooses the layout: eight sentences with five hypotheses each."""


class PackedWeight:
    """A packed copy of a weight matrix, which is no longer used once the weight is replaced or changed in place.

    Changes through `weight.data`, which torch does not count, are not noticed.

    A product with few rows, as in a search step, takes about as long as reading the weights, and torch's float32
    product brings them into another layout at every call. torch has no public function that multiplies packed weights;
    the functions called here are the ones to which its compiler translates linear layers.
    """

    def __init__(self, weight: Float[Tensor, "outputs inputs"]) -> None:
        # The original shares its memory with the weight, so that no other tensor can get the same address.
        self._original, self._version = weight.detach(), weight._version
        self._packed = torch.ops.mkldnn._reorder_linear_weight(self._original, _ROWS)

    @staticmethod
    def can_pack(weight: Tensor) -> bool:
        """Whether a weight is large enough, and oneDNN can multiply packed weights of its dtype on this machine."""
        if weight.device.type != "cpu" or weight.numel() < MIN_WEIGHTS or weight.is_inference():
            return False
        if not (torch.backends.mkldnn.is_available() and torch.backends.mkldnn.enabled):
            return False
        if weight.dtype == torch.bfloat16:
            return torch.ops.mkldnn._is_mkldnn_bf16_supported()
        return weight.dtype == torch.float32

    def product(
        self, x: Float[Tensor, "*rows inputs"], weight: Float[Tensor, "outputs inputs"], bias: Tensor | None
    ) -> Float[Tensor, "*rows outputs"]:
        """x W^T + b up to the rounding of its sums.

        Uses the plain product with gradients, under autocast, for inputs of another dtype, and once W has changed.
        """
        original = self._original
        changed = weight.data_ptr() != original.data_ptr() or weight._version != self._version
        plain = torch.is_grad_enabled() or torch.is_autocast_enabled("cpu")
        if changed or plain or not x.dtype == weight.dtype == original.dtype:
            return F.linear(x, weight, bias)
        return torch.ops.mkldnn._linear_pointwise(x, self._packed, bias, "none", [], "")


class PackedLinear(nn.Linear):
    """A linear layer with a packed weight, which shares the parameters of `layer`.

    Copying or unpickling it gives a plain layer.
    """

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__(layer.in_features, layer.out_features, bias=layer.bias is not None, device="meta")
        _share_parameters(self, dict(layer.named_parameters()), layer.training)
        self._packed = PackedWeight(layer.weight)

    def forward(self, input: Float[Tensor, "*rows inputs"]) -> Float[Tensor, "*rows outputs"]:
        return self._packed.product(input, self.weight, self.bias)

    def __reduce__(self) -> tuple[Any, ...]:
        return _as_plain(self, nn.Linear, self.in_features, self.out_features)


class PackedLSTMCell(nn.LSTMCell):
    """An LSTM cell with packed weights, otherwise like `PackedLinear`."""

    def __init__(self, cell: nn.LSTMCell) -> None:
        super().__init__(cell.input_size, cell.hidden_size, bias=cell.bias, device="meta")
        _share_parameters(self, dict(cell.named_parameters()), cell.training)
        self._packed = PackedWeight(cell.weight_ih), PackedWeight(cell.weight_hh)

    def forward(
        self,
        input: Float[Tensor, "rows inputs"],
        hx: tuple[Float[Tensor, "rows hidden"], Float[Tensor, "rows hidden"]] | None = None,
    ) -> tuple[Float[Tensor, "rows hidden"], Float[Tensor, "rows hidden"]]:
        if hx is None or torch.is_grad_enabled():
            return super().forward(input, hx)
        h, c = hx
        packed_ih, packed_hh = self._packed
        from_input = packed_ih.product(input, self.weight_ih, self.bias_ih)
        i, f, g, o = (from_input + packed_hh.product(h, self.weight_hh, self.bias_hh)).chunk(4, dim=-1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        return o.sigmoid() * c.tanh(), c

    def __reduce__(self) -> tuple[Any, ...]:
        return _as_plain(self, nn.LSTMCell, self.input_size, self.hidden_size)


class PackedGRUCell(nn.GRUCell):
    """A GRU cell with packed weights, otherwise like `PackedLinear`."""

    def __init__(self, cell: nn.GRUCell) -> None:
        super().__init__(cell.input_size, cell.hidden_size, bias=cell.bias, device="meta")
        _share_parameters(self, dict(cell.named_parameters()), cell.training)
        self._packed = PackedWeight(cell.weight_ih), PackedWeight(cell.weight_hh)

    def forward(
        self, input: Float[Tensor, "rows inputs"], hx: Float[Tensor, "rows hidden"] | None = None
    ) -> Float[Tensor, "rows hidden"]:
        if hx is None or torch.is_grad_enabled():
            return super().forward(input, hx)
        packed_ih, packed_hh = self._packed
        r_input, z_input, n_input = packed_ih.product(input, self.weight_ih, self.bias_ih).chunk(3, dim=-1)
        r_state, z_state, n_state = packed_hh.product(hx, self.weight_hh, self.bias_hh).chunk(3, dim=-1)
        z = (z_input + z_state).sigmoid()
        n = (n_input + (r_input + r_state).sigmoid() * n_state).tanh()
        return n + z * (hx - n)

    def __reduce__(self) -> tuple[Any, ...]:
        return _as_plain(self, nn.GRUCell, self.input_size, self.hidden_size)


def pack_weights(model: nn.Module) -> None:
    """Replaces the large linear layers and recurrent cells inside a model with packed ones.

    Subclasses of these layers, and layers with hooks, are left alone. Takes as much memory again as the weights that it
    packs.
    """
    kinds: dict[type, type] = {nn.Linear: PackedLinear, nn.LSTMCell: PackedLSTMCell, nn.GRUCell: PackedGRUCell}
    kinds |= {kind: kind for kind in kinds.values()}  # to pack again after a conversion
    packed: dict[nn.Module, nn.Module] = {}
    for name, layer in list(model.named_modules(remove_duplicate=False)):
        kind = kinds.get(type(layer))
        if kind is None or not name or layer._forward_hooks or layer._forward_pre_hooks:
            continue
        matrices = [parameter for parameter in layer.parameters() if parameter.dim() == 2]
        if layer not in packed and all(PackedWeight.can_pack(matrix) for matrix in matrices):
            packed[layer] = kind(layer)
        if layer in packed:
            model.set_submodule(name, packed[layer])


def _as_plain(layer: nn.Module, *kind_and_sizes: Any) -> tuple[Any, ...]:
    """What `__reduce__` returns: a function and its arguments."""
    return _plain_layer, (*kind_and_sizes, dict(layer.named_parameters()), layer.training)


def _plain_layer(
    kind: type[nn.Linear] | type[nn.LSTMCell] | type[nn.GRUCell],
    inputs: int,
    outputs: int,
    parameters: dict[str, nn.Parameter],
    training: bool,
) -> nn.Module:
    """The layer of that kind with these parameters."""
    layer = kind(inputs, outputs, bias="bias" in parameters or "bias_ih" in parameters, device="meta")
    _share_parameters(layer, parameters, training)
    return layer


def _share_parameters(layer: nn.Module, parameters: dict[str, nn.Parameter], training: bool) -> None:
    """Gives a layer these parameters, and puts it into training or evaluation mode."""
    for name, parameter in parameters.items():
        setattr(layer, name, parameter)
    layer.train(training)
