"""The numbers that a finished model computes with."""

import warnings
from typing import TypeVar

import torch
from torch import nn
from torch.ao.quantization import default_dynamic_qconfig, per_channel_dynamic_qconfig, quantize_dynamic

from nmt.run.refusals import unknown

Model = TypeVar("Model", bound=nn.Module)

PRECISIONS = ("float32", "bfloat16", "int8")

# A scale for each row of a matrix; torch's recurrent networks and cells know one for the whole.
_QUANTISED = {
    nn.Linear: per_channel_dynamic_qconfig,
    **dict.fromkeys((nn.LSTM, nn.GRU, nn.LSTMCell, nn.GRUCell), default_dynamic_qconfig),
}


def with_precision(model: Model, name: str, device: torch.device) -> Model:
    """The model on a device, in one of PRECISIONS, for inference alone.

    `int8` rounds the weights of linear layers and recurrent networks to 8 bits, and what they read to 7 when they read
    it; embeddings, attention and norms stay float32. Raises ValueError for another name, and for int8 on a GPU.
    """
    if name not in PRECISIONS:
        raise ValueError(unknown("precision", name, PRECISIONS))
    if name != "int8":
        return model.to(device, torch.bfloat16 if name == "bfloat16" else torch.float32)
    if device.type != "cpu":
        raise ValueError("precision=int8 is for the CPU: add device=cpu, or use precision=bfloat16 on the GPU.")
    with warnings.catch_warnings():
        # torch points to torchao, whose int8 took 20 to 40 times as long on a CPU: docs/speed.md.
        warnings.simplefilter("ignore")
        quantised: Model = quantize_dynamic(model, _QUANTISED, dtype=torch.qint8)
    return quantised
