"""The attention maps of a sentence pair as labeled arrays."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from nmt.errors import Mistake
from nmt.sites import SITES, Attended
from nmt.text.normalize import WORD_START

if TYPE_CHECKING:
    import matplotlib.axes
    import pandas

BOS, EOS = "<s>", "</s>"


@dataclass(frozen=True)
class LocalWindow:
    """The local window of each row (Luong et al. 2015, section 3.2)."""

    center: Float[np.ndarray, "layers heads rows"]
    """p_t, the source position at the center of the window, from 0."""
    allowed: Bool[np.ndarray, "layers heads rows columns"]
    """Where |s - p_t| <= D; all other weights are 0."""
    prior: Float[np.ndarray, "layers heads rows columns"] | None
    """The Gaussian g(s) around p_t, over all columns; None for local-m, which has none."""


@dataclass(frozen=True)
class AttentionMap:
    """The weights of one sentence pair at one site, from attention or from an attribution method.

    At a decoder site, row t is step t, which reads `inputs[t]` and predicts `outputs[t]`. In the encoder, both are
    the same source piece. The columns are what the rows attend to: pieces, or whole earlier sentences.
    """

    site: str
    """A name in nmt.sites.SITES, or 'context' for what earlier sentences add."""
    weights: Float[np.ndarray, "layers heads rows columns"]
    """After the normalizer and the window, before dropout; a blocked weight is exactly 0."""
    inputs: list[str]
    """The piece that each row reads."""
    outputs: list[str]
    """The piece that each row predicts."""
    columns: list[str]
    """The piece at each column, or the number of the earlier sentence."""
    local: LocalWindow | None = None
    """None if the model has no local window at this site."""
    attribution: Float[np.ndarray, "layers heads rows columns"] | None = None
    """Signed attributions; the weights are their absolute values divided by their sum in each row. None for attention.

    At 'context', the absolute values are divided by the largest one in the map instead.

    Attributions are in nats, except for value zeroing, which gives cosine distances.
    """
    mask: Bool[np.ndarray, "rows columns"] | None = None
    """Which columns each row can see; None if that is what the table of sites says, as it is except in an LSTMN."""

    def __repr__(self) -> str:
        # The arrays would fill several screens of a terminal.
        layers, heads, rows, columns = self.weights.shape
        return f"AttentionMap(site={self.site!r}, layers={layers}, heads={heads}, rows={rows}, columns={columns})"

    @property
    def visible(self) -> Bool[np.ndarray, "#layers #heads rows columns"]:
        """Which columns each row can see."""
        if self.local is not None:
            return self.local.allowed
        mask = visible_by_site(self.site, self.weights.shape[-2:]) if self.mask is None else self.mask
        return mask[None, None]

    @property
    def sides(self) -> tuple[str, str]:
        """What the rows and the columns are, such as 'target' and 'source'."""
        site = SITES.get(self.site)
        # 'context' is the only site that is not in the table.
        return (site.rows, site.columns) if site else ("target", "earlier sentences")

    def plot(
        self,
        layer: int | None = None,
        head: int | None = None,
        *,
        row: Literal["predicts", "reads"] = "predicts",
        words: bool = True,
        title: str = "",
        axes: Any = None,
    ) -> "matplotlib.axes.Axes":
        """Draws the map on axes of matplotlib, by default new ones, and returns them.

        The map is that of one layer and head; None means the mean over all layers or heads. Its rows are labeled by
        the words that they predict or read; without `words`, by pieces. Raises Mistake for a layer or head that the
        map does not have.
        """
        from nmt.maps.notebook import plot_map  # which imports this module

        return plot_map(self, layer, head, row=row, words=words, title=title, axes=axes)

    def to_frame(self, row: Literal["predicts", "reads"] = "predicts") -> "pandas.DataFrame":
        """A table with a row for each weight: site, layer, head, row and column with their labels, and weight.

        An attribution also has its signed values. Raises Mistake if pandas is not installed.
        """
        from nmt.maps.notebook import frame_of

        return frame_of(self, row)

    def _repr_html_(self) -> str:
        """What a notebook displays."""
        from nmt.maps.notebook import map_html

        return map_html(self)


def visible_by_site(site: str, shape: tuple[int, ...]) -> Bool[np.ndarray, "rows columns"]:
    """The columns that each row sees according to the table of sites: all, or those up to its own position."""
    every = np.ones(shape, dtype=bool)
    return np.tril(every) if site in SITES and SITES[site].causal else every


class EarlierPair(NamedTuple):
    """The pieces of an earlier sentence pair of the same document."""

    source_pieces: list[str]
    target_pieces: list[str]


@dataclass(frozen=True)
class SentenceMaps:
    """A sentence pair as pieces, and its maps at every site."""

    line: int
    """Line number in the input, from 1."""
    rank: int
    """1 for a given target or the best translation, 2 for the second best, ..."""
    source_pieces: list[str]
    target_pieces: list[str]
    maps: list[AttentionMap]
    score: float | None = None
    """The search's score of the target, which is its log-probability with the penalties; None for a given target."""
    earlier: Sequence[EarlierPair] = ()
    """The earlier pairs of its document that the model read."""

    def site(self, name: str) -> AttentionMap:
        """The map of a site, such as 'cross'. Raises Mistake if the model has no such site."""
        return map_at(name, self.maps)


def map_at(site: str, maps: Sequence[AttentionMap]) -> AttentionMap:
    """The map of a site, such as 'cross'. Raises Mistake if none of the maps is of that site."""
    by_site = {item.site: item for item in maps}
    if not by_site:
        raise Mistake(f"There is no map at site '{site}': a side of the pair is empty or too long for the model.")
    if site not in by_site:
        raise Mistake(f"There are no maps at site '{site}', only at {', '.join(by_site)}; choose one.")
    return by_site[site]


class Labels(NamedTuple):
    """The pieces that the rows read and predict, and those at the columns, with BOS and EOS."""

    inputs: list[str]
    outputs: list[str]
    columns: list[str]


def site_labels(
    source_pieces: Sequence[str], target_pieces: Sequence[str], earlier: Sequence[EarlierPair] = ()
) -> dict[str, Labels]:
    """The labels of a sentence pair's maps, by site. Earlier sentences are called -1 (the one before), -2 and so on."""
    source = [*source_pieces, EOS]
    inputs, outputs = [BOS, *target_pieces], [*target_pieces, EOS]
    rows = {"source": (source, source), "target": (inputs, outputs)}
    numbers = [f"{WORD_START}-{back}" for back in range(len(earlier), 0, -1)]
    columns: dict[Attended, list[str]] = {"source": source, "target": inputs}
    if earlier:
        columns["earlier source"] = [piece for pair in earlier for piece in (*pair.source_pieces, EOS)]
        columns["earlier target"] = [piece for pair in earlier for piece in (BOS, *pair.target_pieces)]
        columns["earlier sentences"] = numbers
    labels = {
        name: Labels(*rows[site.rows], columns[site.columns]) for name, site in SITES.items() if site.columns in columns
    }
    if earlier:
        labels["context"] = Labels(inputs, outputs, [*numbers, f"{WORD_START}all"])
    return labels


def selected_sites(site: str, known: Iterable[str]) -> list[str]:
    """The sites that a setting selects: one, or every one for 'all'. Raises Mistake if the site is not known."""
    known = list(known)
    if site not in (*known, "all"):
        raise Mistake(f"There is no attention at site '{site}', only at {', '.join(known)}; choose one, or all.")
    return known if site == "all" else [site]


def check_layer_or_head(name: str, index: int | None, number: int, site: str) -> None:
    """Raises Mistake unless `index` is one of a site's `number` layers or heads; None means their mean."""
    if index is not None and not 0 <= index < number:
        raise Mistake(
            f"{name} is {index}; {site} has {numbered(name, number)}: choose one, or leave it out for the mean."
        )


def numbered(name: str, number: int) -> str:
    """So many things counted from 0, such as 'layers 0 to 2' or 'only layer 0'."""
    return f"{name}s 0 to {number - 1}" if number > 1 else f"only {name} 0"


def selected(
    weights: Float[np.ndarray, "layers heads *map"], layer: int | None, head: int | None
) -> Float[np.ndarray, "*map"]:
    """The map of one layer and head; None means the mean over all layers or heads."""
    of_layer = weights.mean(0) if layer is None else weights[layer]
    of_head: Float[np.ndarray, "*map"] = of_layer.mean(0) if head is None else of_layer[head]
    return of_head
