"""Linear layers for search on a CPU, with weights in the layout that oneDNN multiplies fastest."""

import copy
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

MIN_WEIGHTS = 2**17
"""Smaller layers are as fast without packing, or faster (docs/lab_notebook.md)."""

_ROWS = 40
"""The number of input rows for which oneDNN chooses the layout: eight sentences with five hypotheses each."""


class PackedLinear(nn.Linear):
    """A linear layer that also holds a packed copy of its weight, which it uses whenever gradients are disabled.

    The rows of a search are few, so that its products take the time of reading the weights, and torch's float32
    product would bring them into another order at every call. The result is that of `layer` up to the rounding of its
    sums. The packed copy is no parameter and does not follow later changes of the weight. A deep copy is a plain
    linear layer.
    """

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__(layer.in_features, layer.out_features, bias=layer.bias is not None, device="meta")
        self.weight, self.bias = layer.weight, layer.bias
        self.train(layer.training)
        self._packed = torch.ops.mkldnn._reorder_linear_weight(layer.weight.detach(), _ROWS)

    def forward(self, input: Float[Tensor, "*rows in_features"]) -> Float[Tensor, "*rows out_features"]:
        if torch.is_grad_enabled():
            return super().forward(input)
        return torch.ops.mkldnn._linear_pointwise(input, self._packed, self.bias, "none", [], "")

    def __deepcopy__(self, memo: dict[int, Any]) -> nn.Linear:
        plain = nn.Linear(self.in_features, self.out_features, bias=self.bias is not None, device="meta")
        plain.weight, plain.bias = copy.deepcopy(self.weight, memo), copy.deepcopy(self.bias, memo)
        return plain.train(self.training)


def pack_linear_layers(model: nn.Module) -> None:
    """Replaces the large linear layers of a model on a CPU by packed ones, for a model whose weights stay as they are.

    Does nothing where oneDNN cannot multiply packed weights of the model's dtype.
    """
    packed: dict[nn.Module, PackedLinear] = {}
    for name, layer in list(model.named_modules(remove_duplicate=False)):
        if isinstance(layer, nn.Linear) and _can_pack(layer.weight):
            if layer not in packed:
                packed[layer] = PackedLinear(layer)
            model.set_submodule(name, packed[layer])


def _can_pack(weight: Tensor) -> bool:
    if weight.device.type != "cpu" or weight.numel() < MIN_WEIGHTS or not torch.backends.mkldnn.is_available():
        return False
    if weight.dtype == torch.bfloat16:
        return torch.ops.mkldnn._is_mkldnn_bf16_supported()
    return weight.dtype == torch.float32
