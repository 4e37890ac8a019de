"""Attention maps collected while a model runs forward."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float
from torch import Tensor

from nmt.maps.attention_map import AttentionMap, LocalWindow, site_labels


# The test run checks the types of arguments, and can check protocols only so.
@runtime_checkable
class View(Protocol):
    """What a window tells of its work: see nmt.attention.windows.View."""

    @property
    def mask(self) -> Tensor: ...

    @property
    def center(self) -> Tensor | None: ...

    @property
    def log_prior(self) -> Tensor | None: ...


class _Layer(NamedTuple):
    weights: Float[np.ndarray, "batch heads queries keys"]
    center: Float[np.ndarray, "batch heads queries"] | None
    allowed: Bool[np.ndarray, "batch heads queries keys"] | None
    prior: Float[np.ndarray, "batch heads queries keys"] | None


class Recorder:
    """A watch for one forward pass: `model(..., watch=recorder)` leaves its weights in `layers`, as arrays."""

    def __init__(self) -> None:
        self.layers: dict[str, dict[int, _Layer]] = defaultdict(dict)

    def __call__(self, site: str, layer: int, weights: Float[Tensor, "batch heads queries keys"], view: View) -> None:
        """Keep the weights of a layer, and of a local window what it allowed. Raises ValueError when it has some."""
        if layer in self.layers[site]:
            raise ValueError(f"Layer {layer} of {site} was recorded before: use a new Recorder for each forward pass.")
        self.layers[site][layer] = _recorded(weights, view)

    def sentence(self, index: int, source_pieces: Sequence[str], target_pieces: Sequence[str]) -> list[AttentionMap]:
        """The maps of a sentence of the batch at every recorded site, cut to its own lengths (EOS counted)."""
        labels = site_labels(source_pieces, target_pieces)
        maps = []
        for site, recorded in self.layers.items():
            layers = [layer for _, layer in sorted(recorded.items())]
            rows, columns = len(labels[site].inputs), len(labels[site].columns)
            weights = _stack([layer.weights for layer in layers], index)[:, :, :rows, :columns]
            maps.append(AttentionMap(site, weights, *labels[site], _local_window(layers, index, rows, columns)))
        return maps


def _recorded(weights: Tensor, view: View) -> _Layer:
    shown = _array(weights)
    if view.center is None:
        return _Layer(shown, None, None, None)
    center = np.broadcast_to(_array(view.center)[..., 0], shown.shape[:3])
    allowed = np.broadcast_to(view.mask.cpu().numpy(), shown.shape)
    prior = None if view.log_prior is None else np.broadcast_to(_array(view.log_prior.exp()), shown.shape)
    return _Layer(shown, center, allowed, prior)


def _local_window(layers: Sequence[_Layer], index: int, rows: int, columns: int) -> LocalWindow | None:
    def cut(part: str) -> Any:
        return _stack([getattr(layer, part) for layer in layers], index)[:, :, :rows, :columns]

    if layers[0].center is None:
        return None
    prior = None if layers[0].prior is None else cut("prior")
    return LocalWindow(_stack([layer.center for layer in layers], index)[:, :, :rows], cut("allowed"), prior)


def _stack(layers: Sequence[Any], index: int) -> Any:
    """One sentence of each layer's array."""
    return np.stack([layer[index] for layer in layers])


def _array(tensor: Tensor) -> Float[np.ndarray, "..."]:
    return tensor.detach().float().cpu().numpy()
