"""Inference precision."""

import warnings
from typing import TypeVar

import torch
from torch import nn

from nmt.config.messages import unknown
from nmt.errors import Mistake
from nmt.kernels.packed_weights import pack_weights
from nmt.models.no_initial_weights import NoInitialWeights

Model = TypeVar("Model", bound=nn.Module)

PRECISIONS = ("float32", "bfloat16", "int8")


def check_precision(name: object, device: torch.device) -> None:
    """Raises Mistake for a name not in PRECISIONS, and for int8 where it is not supported."""
    if name not in PRECISIONS:
        raise Mistake(unknown("precision", str(name), PRECISIONS))
    if name == "int8" and device.type != "cpu":
        raise Mistake("precision=int8 runs only on the CPU: add device=cpu, or use precision=bfloat16 on the GPU.")
    if name == "int8" and torch.backends.quantized.engine == "none":
        raise Mistake("precision=int8 is not supported by this build of torch on this CPU; leave precision out.")


def with_precision(model: Model, name: str, device: torch.device) -> Model:
    """The model on a device in one of PRECISIONS, for inference only. Raises Mistake as `check_precision` does.

    float32 and bfloat16 convert the given model and, on a CPU, pack the weights of its large layers, which takes as
    much memory again as those weights (see nmt.kernels.packed_weights). int8 returns a copy: the weights of linear
    layers and recurrent networks are rounded to 8 bits, with one scale per row of a linear layer; the inputs of these
    layers are rounded to 7 bits with one scale per batch, so a sentence's translation can depend on the other sentences
    in its batch. Embeddings, scores, attention weights, norms and the parameters of scorers stay float32.
    """
    check_precision(name, device)
    if name != "int8":
        model = model.to(device, torch.bfloat16 if name == "bfloat16" else torch.float32)
        with NoInitialWeights():  # the packed layers share the weights of the layers that they replace
            pack_weights(model)
        return model
    # torch.ao is deprecated in favor of torchao, whose torch._int_mm is slower on a CPU; see docs/lab_notebook.md.
    from torch.ao import quantization

    recurrent = (nn.LSTM, nn.GRU, nn.LSTMCell, nn.GRUCell)
    rounded: dict[type[nn.Module], quantization.QConfig] = {
        nn.Linear: quantization.per_channel_dynamic_qconfig,
        **dict.fromkeys(recurrent, quantization.default_dynamic_qconfig),
    }
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="torch.ao.quantization is deprecated")
        warnings.filterwarnings("ignore", message="torch.quantize_per_")
        quantized: Model = quantization.quantize_dynamic(model, rounded, dtype=torch.qint8)
    return quantized
