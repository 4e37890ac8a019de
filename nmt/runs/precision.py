"""The numbers that a finished model computes with."""

import warnings
from typing import TypeVar

import torch
from torch import nn

from nmt.config.messages import unknown

Model = TypeVar("Model", bound=nn.Module)

PRECISIONS = ("float32", "bfloat16", "int8")


def check_precision(name: object, device: torch.device) -> None:
    """Raises ValueError for none of PRECISIONS, and for int8 where it cannot be computed."""
    if name not in PRECISIONS:
        raise ValueError(unknown("precision", str(name), PRECISIONS))
    if name == "int8" and device.type != "cpu":
        raise ValueError("precision=int8 is for the CPU: add device=cpu, or use precision=bfloat16 on the GPU.")
    if name == "int8" and torch.backends.quantized.engine == "none":
        raise ValueError("precision=int8: this build of torch cannot compute it on this CPU; leave precision out.")


def with_precision(model: Model, name: str, device: torch.device) -> Model:
    """The model on a device with numbers of one of PRECISIONS, for inference alone. Raises as `check_precision`.

    `int8` makes a copy: weights of linear layers and recurrent networks are rounded to 8 bits, one scale for each row
    of a linear layer; what they read is rounded to 7 bits, one scale for the whole batch, so that a sentence's
    translation may depend on the others in its batch. Embeddings, scores, attention weights, norms and a scorer's own
    parameters stay float32. The others change the given model.
    """
    check_precision(name, device)
    if name != "int8":
        return model.to(device, torch.bfloat16 if name == "bfloat16" else torch.float32)
    # Here, because torch has announced that it will be torchao's, whose way on a CPU is slower: docs/lab_notebook.md.
    from torch.ao import quantization

    recurrent = (nn.LSTM, nn.GRU, nn.LSTMCell, nn.GRUCell)
    rounded: dict[type[nn.Module], quantization.QConfig] = {
        nn.Linear: quantization.per_channel_dynamic_qconfig,
        **dict.fromkeys(recurrent, quantization.default_dynamic_qconfig),
    }
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="torch.ao.quantization is deprecated")
        warnings.filterwarnings("ignore", message="torch.quantize_per_")
        quantised: Model = quantization.quantize_dynamic(model, rounded, dtype=torch.qint8)
    return quantised
