"""Attention maps of a sentence pair as arrays, with their labels."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

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
    """After the normaliser and the window, before dropout; what is blocked is 0."""
    inputs: list[str]
    """What each row reads."""
    outputs: list[str]
    """What each row predicts."""
    columns: list[str]
    """What is attended to."""
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
    score: float | None = None
    """Of the search that found the target: its log-probability with the penalties; None for a given target."""

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


def selected(
    weights: Float[np.ndarray, "layers heads *map"], layer: int | None, head: int | None
) -> Float[np.ndarray, "*map"]:
    """The map of a layer and a head, the mean of them where it is None."""
    of_layer = weights.mean(0) if layer is None else weights[layer]
    found: Float[np.ndarray, "*map"] = of_layer.mean(0) if head is None else of_layer[head]
    return found
