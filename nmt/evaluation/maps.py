"""Attention maps: collected while a model runs forward, and cut to each sentence."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float
from torch import Tensor

BOS, EOS = "<s>", "</s>"


@dataclass(frozen=True)
class LocalWindow:
    """What a local window left of a map (Luong et al. 2015, section 3.2)."""

    center: Float[np.ndarray, "layers heads rows"]
    """p_t, the source position around which a row looks, from 0."""
    allowed: Bool[np.ndarray, "layers heads rows columns"]
    """|s - p_t| <= D; the weights of the others are 0."""
    prior: Float[np.ndarray, "layers heads rows columns"] | None
    """The Gaussian g(s) around p_t of local-p, over all columns."""


@dataclass(frozen=True)
class AttentionMap:
    """The weights of one sentence at one site, with labels.

    Row t of the sites in the decoder is step t, which reads `inputs[t]` and predicts `outputs[t]`; in the encoder both
    are the source piece. Columns are what is attended to.
    """

    site: str
    """'encoder_self', 'decoder_self' or 'cross'."""
    weights: Float[np.ndarray, "layers heads rows columns"]
    inputs: list[str]
    outputs: list[str]
    columns: list[str]
    local: LocalWindow | None = None
    """Of a site with a local window."""


@dataclass(frozen=True)
class SentenceMaps:
    """A sentence pair as pieces, and its maps at every site."""

    line: int
    """Its line in the input, from 1."""
    rank: int
    """1 for the given or the best translation, 2 for the second best, ..."""
    source_pieces: list[str]
    target_pieces: list[str]
    maps: list[AttentionMap]

    def site(self, name: str) -> AttentionMap:
        """The map of a site, such as 'cross'. Raises ValueError when the model has no such site."""
        found = [item for item in self.maps if item.site == name]
        if not found:
            raise ValueError(
                f"There is no attention at site '{name}', only at {', '.join(item.site for item in self.maps)}."
            )
        return found[0]


class Labels(NamedTuple):
    """What the rows read and predict, and what the columns are; EOS and BOS are pieces too."""

    inputs: list[str]
    outputs: list[str]
    columns: list[str]


def site_labels(source_pieces: Sequence[str], target_pieces: Sequence[str]) -> dict[str, Labels]:
    """The labels of the maps of a sentence pair, by site."""
    source = [*source_pieces, EOS]
    inputs, outputs = [BOS, *target_pieces], [*target_pieces, EOS]
    return {
        "encoder_self": Labels(source, source, source),
        "decoder_self": Labels(inputs, outputs, inputs),
        "cross": Labels(inputs, outputs, source),
    }


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
