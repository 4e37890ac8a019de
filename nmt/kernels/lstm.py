"""LSTMs under bfloat16 autocast on CPUs without bfloat16 instructions."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch
from torch import nn


@contextmanager
def lstm_supported(network: nn.Module) -> Iterator[None]:
    """Keeps torch from calling oneDNN for an LSTM that oneDNN cannot compute.

    If all sequences have the same length, torch (2.11 to 2.13) calls oneDNN under bfloat16 autocast even on a CPU that
    oneDNN does not support, and fails with "could not create a primitive descriptor". Without oneDNN, torch processes
    such sequences in the same way as sequences of different lengths.
    """
    bfloat16 = torch.is_autocast_enabled("cpu") and torch.get_autocast_dtype("cpu") == torch.bfloat16
    if isinstance(network, nn.LSTM) and bfloat16 and not _has_bfloat16_lstm():
        flags: Any = torch.backends.mkldnn  # its flags(enabled=False) warns about GPUs
        enabled = flags.enabled
        flags.enabled = False
        try:
            yield
        finally:
            flags.enabled = enabled
    else:
        yield


@cache
def _has_bfloat16_lstm() -> bool:
    lstm = nn.LSTM(1, 1, device="meta").to_empty(device="cpu")  # draws no random numbers
    try:
        with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
            lstm(torch.zeros(1, 1))
    except RuntimeError:
        return False
    return True
