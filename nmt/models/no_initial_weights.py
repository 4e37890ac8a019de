"""Builds modules without drawing their initial weights."""

from typing import Any

from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

_DRAWS = (Tensor.normal_, Tensor.uniform_, nn.init.normal_, nn.init.uniform_, nn.init.kaiming_uniform_)
"""The random numbers of torch's layers and of ours come from these."""


class NoInitialWeights(TorchFunctionMode):
    """Inside it, the weights of a new module are not drawn, so they hold whatever the memory held before.

    It is for weights that are replaced next, and for the meta device, on which weights have no values: to draw numbers
    there, torch imports its compiler, which takes longer than importing torch itself.
    """

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if func in _DRAWS:
            return args[0] if args else kwargs["tensor"]
        return func(*args, **kwargs)
