"""Without a GPU, Triton's kernels are run by its interpreter, as it must be told before triton is first imported."""

import os

import torch

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"
