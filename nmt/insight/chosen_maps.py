"""Keeps the maps of some sites and layers: all maps of a corpus take too much space."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nmt.errors import Mistake
from nmt.maps.attention_map import AttentionMap, LocalWindow, SentenceMaps, numbered


@dataclass(frozen=True)
class ChosenMaps:
    """Which maps to keep."""

    sites: Mapping[str, Mapping[str, Any]]
    """The chosen sites, as the manifest describes them."""
    layers: Sequence[int] | None
    """The chosen layers of the model; None for all. In the maps, they are numbered from 0."""

    def of(self, sentences: Iterable[SentenceMaps]) -> Iterator[SentenceMaps]:
        """Yields each sentence with the chosen maps only; a sentence that has none is left out.

        Raises Mistake if every sentence is left out, as with a site of documents if there are no documents.
        """
        empty = True
        for sentence in sentences:
            if maps := [self._layers_of(item) for item in sentence.maps if item.site in self.sites]:
                empty = False
                yield replace(sentence, maps=maps)
        if empty:
            raise Mistake(
                f"No sentence has maps at {', '.join(self.sites)}; choose other sites, or add documents=FILE."
            )

    def _layers_of(self, item: AttentionMap) -> AttentionMap:
        if self.layers is None:
            return item
        layers, local = np.array(self.layers), item.local
        if local is not None:
            prior = None if local.prior is None else local.prior[layers]
            local = LocalWindow(local.center[layers], local.allowed[layers], prior)
        return replace(item, weights=item.weights[layers], local=local)


def chosen_maps(
    described: Mapping[str, Mapping[str, Any]], sites: Sequence[str] | None, layers: Sequence[int] | None
) -> ChosenMaps:
    """The choice among the sites of a model; None chooses all. Raises Mistake if the model lacks a site or layer."""
    for site in sites or ():
        if site not in described:
            raise Mistake(
                f"sites contains '{site}', but this model has attention only at {', '.join(described)}: choose some of "
                "these."
            )
    chosen = {site: about for site, about in described.items() if sites is None or site in sites}
    if layers is None:
        return ChosenMaps(chosen, None)
    numbers = sorted(set(layers))
    for site, about in chosen.items():
        if numbers[-1] >= about["layers"]:
            raise Mistake(
                f"layers contains {numbers[-1]}, but {site} has {numbered('layer', about['layers'])}: choose some of "
                "these, or leave out the site with sites=[...]."
            )
    return ChosenMaps(
        {site: {**about, "layers": len(numbers), "layers_of_model": numbers} for site, about in chosen.items()}, numbers
    )
