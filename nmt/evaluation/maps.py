"""Attention maps: collected while a model runs forward, cut to each sentence, written as JSON."""

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float
from torch import Tensor

_BOS, _EOS = "<s>", "</s>"
_DECIMALS = 6


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


class Recorder:
    """A watch for one forward pass: `model(..., watch=recorder)` leaves its weights in `layers`, as arrays."""

    def __init__(self) -> None:
        self.layers: dict[str, dict[int, Float[np.ndarray, "batch heads queries keys"]]] = defaultdict(dict)

    def __call__(self, site: str, layer: int, weights: Float[Tensor, "batch heads queries keys"]) -> None:
        """Keep the weights of a layer. Raises ValueError when it has some already."""
        if layer in self.layers[site]:
            raise ValueError(f"Layer {layer} of {site} was recorded before: use a new Recorder for each forward pass.")
        self.layers[site][layer] = weights.detach().float().cpu().numpy()

    def site(self, site: str, index: int) -> Float[np.ndarray, "layers heads queries keys"]:
        """The weights of a sentence of the batch, padded. Raises ValueError for a site that showed none."""
        if site not in self.layers:
            raise ValueError(
                f"No weights of site '{site}' were recorded; there are {', '.join(self.layers) or 'none'}."
            )
        return np.stack([weights[index] for _, weights in sorted(self.layers[site].items())])

    def sentence(self, index: int, source_pieces: Sequence[str], target_pieces: Sequence[str]) -> list[AttentionMap]:
        """The maps of a sentence at every recorded site, cut to its own lengths (EOS counted)."""
        source = [*source_pieces, _EOS]
        inputs, outputs = [_BOS, *target_pieces], [*target_pieces, _EOS]
        labels = {
            "encoder_self": (source, source, source),
            "decoder_self": (inputs, outputs, inputs),
            "cross": (inputs, outputs, source),
        }
        maps = []
        for site in self.layers:
            rows_in, rows_out, columns = labels[site]
            weights = self.site(site, index)[:, :, : len(rows_in), : len(columns)]
            maps.append(AttentionMap(site, weights, rows_in, rows_out, columns))
        return maps


def write_maps(path: Path, maps: Sequence[AttentionMap]) -> None:
    """One sentence as JSON: {site: {inputs, outputs, columns, weights[layer][head][row][column]}}, to 6 decimals."""
    sites = {
        item.site: {
            "inputs": item.inputs,
            "outputs": item.outputs,
            "columns": item.columns,
            "weights": item.weights.astype(np.float64).round(_DECIMALS).tolist(),
        }
        for item in maps
    }
    path.write_text(json.dumps(sites, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")
