"""Records attention maps during the forward pass of a model."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float
from torch import Tensor

from nmt.maps.attention_map import AttentionMap, EarlierPair, LocalWindow, site_labels, visible_by_site
from nmt.sites import SITES


# The tests check the types of arguments, which needs a protocol that can be checked at run time.
@runtime_checkable
class Visible(Protocol):
    """The parts of nmt.attention.windows.VisibleKeys that a recorder reads."""

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
    mask: Bool[np.ndarray, "batch queries keys"] | None
    """Which keys each query sees, at the sites where a model may differ from the table of sites."""


class Recorder:
    """Records the weights of one forward pass, `model(..., watch=recorder)`, as arrays."""

    def __init__(self) -> None:
        self.layers: dict[str, dict[int, _Layer]] = defaultdict(dict)

    def __call__(
        self, site: str, layer: int, weights: Float[Tensor, "batch heads queries keys"], visible: Visible
    ) -> None:
        """Records a layer's weights and local window. Raises ValueError if the layer has already been recorded."""
        if layer in self.layers[site]:
            raise ValueError(f"Layer {layer} of {site} is already recorded: use a new Recorder for each forward pass.")
        array = _array(weights)
        center = allowed = prior = None
        if visible.center is not None:
            # The window is often the same for all heads, and its arrays then have one head.
            center = np.broadcast_to(_array(visible.center)[..., 0], array.shape[:3])
            allowed = np.broadcast_to(visible.mask.cpu().numpy(), array.shape)
            prior = None if visible.log_prior is None else np.broadcast_to(_array(visible.log_prior.exp()), array.shape)
        mask = None
        if SITES[site].of_one_side:
            # Without a local window, which only cross attention has, all heads see the same keys.
            mask = np.broadcast_to(visible.mask.cpu().numpy(), array.shape)[:, 0]
        self.layers[site][layer] = _Layer(weights=array, center=center, allowed=allowed, prior=prior, mask=mask)

    def sentence(
        self,
        index: int,
        source_pieces: Sequence[str],
        target_pieces: Sequence[str],
        earlier: Sequence[EarlierPair] = (),
    ) -> list[AttentionMap]:
        """The maps of one sentence of the batch at every recorded site, including EOS but without padding.

        `earlier` holds the earlier sentences of its document that the model read; if there are none, the sites that
        attend to earlier sentences are left out. The local window is left out if only some layers of a site have one.
        """
        labels = site_labels(source_pieces, target_pieces, earlier)
        maps = []
        for site, recorded in self.layers.items():
            if site not in labels:
                continue
            layers = [layer for _, layer in sorted(recorded.items())]
            stacked: list[Any] = [
                None if any(part is None for part in parts) else np.stack([part[index] for part in parts])
                for parts in zip(*layers, strict=True)
            ]
            weights, center, allowed, prior, masks = stacked
            rows, columns = slice(len(labels[site].inputs)), slice(len(labels[site].columns))
            local = None
            if SITES[site].of_document:
                weights = weights[..., self._columns_of(site, earlier)]
            if center is not None:
                prior = None if prior is None else prior[:, :, rows, columns]
                local = LocalWindow(center[:, :, rows], allowed[:, :, rows, columns], prior)
            mask = None if masks is None else masks[0, rows, columns]
            if mask is not None and (mask == visible_by_site(site, mask.shape)).all():
                mask = None
            shown = weights[:, :, rows, columns]
            maps.append(AttentionMap(site=site, weights=shown, **labels[site]._asdict(), local=local, mask=mask))
        return maps

    def _columns_of(self, site: str, earlier: Sequence[EarlierPair]) -> list[int]:
        """The columns of a sentence's own earlier sentences: the last ones, because padding comes first."""
        stack, _, level = site.rpartition("_")  # 'encoder' or 'decoder', and 'words' or 'sentences'
        sentences = self.layers[f"{stack}_sentences"][0].weights.shape[-1]
        first = sentences - len(earlier)
        if level == "sentences":
            return list(range(first, sentences))
        width = self.layers[site][0].weights.shape[-1] // sentences
        pieces = "source_pieces" if stack == "encoder" else "target_pieces"
        lengths = [len(getattr(pair, pieces)) + 1 for pair in earlier]  # EOS, or BOS
        return [(first + number) * width + word for number, length in enumerate(lengths) for word in range(length)]


def _array(tensor: Tensor) -> Float[np.ndarray, "..."]:
    return tensor.detach().float().cpu().numpy()  # float, because numpy has no bfloat16
