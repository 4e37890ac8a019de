"""What tests of several folders need.

Without a GPU, Triton's kernels are run by its interpreter, as it must be told before triton is first imported.
"""

import os
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"


class LargestMade(TorchDispatchMode):
    """How many numbers the largest new tensor has of those made under it; a view is none."""

    numbers = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        known = {x.untyped_storage().data_ptr() for x in _tensors((args, kwargs))}
        sizes = [x.numel() for x in _tensors(made) if x.untyped_storage().data_ptr() not in known]
        self.numbers = max([self.numbers, *sizes])
        return made


def _tensors(tree: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


@pytest.fixture
def largest_made() -> Callable[[], LargestMade]:
    return LargestMade
