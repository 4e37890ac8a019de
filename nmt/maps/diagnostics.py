"""What attention maps tell without gold alignments: how sharp, monotonic and complete they are, and dead heads."""

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from nmt.maps.attention_map import BOS, EOS, AttentionMap, LocalWindow, SentenceMaps, selected

Heads = Float[np.ndarray, "layers heads"]

UNIFORM, SINK, CONSTANT = 0.99, 0.95, 0.02
"""From which uniformity, weight on BOS and EOS, and down to which variation a head counts as dead."""


class Measures(NamedTuple):
    """Of each head, over the rows of a sentence; every row is divided by its sum, rows without weight are left out."""

    entropy: Heads
    """Mean of -sum_s a_s ln a_s, in nats: 0 where all weight is on one column."""
    uniformity: Heads
    """Mean of the entropy over that of equal weights on all columns that the row may see."""
    distance: Heads
    """Mean of sum_s a_s |s / (columns - 1) - t / (rows - 1)|: how far from the diagonal the weight lies."""
    monotonicity: Heads
    """Share of the steps at which the largest weight does not move back."""
    coverage: Heads
    """Mean over the columns, BOS and EOS aside, of min(sum of the column's weights, 1)."""
    special: Heads
    """Mean weight on BOS and EOS."""
    punctuation: Heads
    """Mean weight on pieces that are punctuation."""
    variation: Heads
    """Mean distance (half the sum of the differences) of a row from the mean row: 0 where no query matters."""


WORSE_IS_LESS = {"monotonicity", "coverage", "variation"}
"""The measures of which a small value is bad; of the others a large one is."""


class Row(NamedTuple):
    """The measures of one head, in one sentence or over all of them."""

    line: int
    """From 1; 0 for the mean of the sentences."""
    rank: int
    site: str
    layer: int | None
    """None: the mean of the layers."""
    head: int | None
    """None: the mean of the heads."""
    values: dict[str, float]
    dead: str
    """Why the head counts as dead: 'uniform', 'sink' (all on BOS or EOS) or 'constant'; empty where it does not."""


def measure(item: AttentionMap) -> Measures:
    """The measures of every layer and head of a map."""
    shares, used = _shares(item.weights)
    rows, columns = shares.shape[-2:]
    entropies = _entropies(shares)
    widest = np.log(np.broadcast_to(_visible(item).sum(-1), used.shape).clip(min=1))
    places = np.arange(columns) / max(1, columns - 1) - np.arange(rows)[:, None] / max(1, rows - 1)
    ends = np.array([label in (BOS, EOS) for label in item.columns])
    stops = np.array([_is_punctuation(label) for label in item.columns])
    mean_row = _mean(shares, used[..., None], axis=-2)
    return Measures(
        _mean(entropies, used),
        _mean(np.divide(entropies, widest, out=np.ones_like(entropies), where=widest > 0), used & (widest > 0)),
        _mean((shares * np.abs(places)).sum(-1), used),
        _monotonicity(shares, used),
        np.minimum(shares.sum(-2), 1)[..., ~ends].mean(-1) if not ends.all() else np.ones(used.shape[:2]),
        _mean(shares[..., ends].sum(-1), used),
        _mean(shares[..., stops].sum(-1), used),
        _mean(np.abs(shares - mean_row[..., None, :]).sum(-1) / 2, used),
    )


def narrowed(item: AttentionMap, layer: int | None, head: int | None) -> AttentionMap:
    """One layer and one head of a map, or the mean of them where that is None, as a map by itself."""
    local = None
    if item.local:
        center = selected(item.local.center, layer, head)
        allowed = selected(item.local.allowed.astype(np.float64), layer, head) > 0
        local = LocalWindow(center[None, None], allowed[None, None], None)
    return replace(item, weights=selected(item.weights, layer, head)[None, None], local=local)


def head_entropies(weights: Float[np.ndarray, "layers heads rows columns"]) -> Heads:
    """The entropy of `Measures` alone; NaN for a head none of whose rows has weight."""
    shares, used = _shares(weights)
    return np.where(used.any(-1), _mean(_entropies(shares), used), np.nan)


def per_sentence(sentences: Iterable[SentenceMaps]) -> list[Row]:
    """A row for each sentence, site, layer and head."""
    return [
        _row(sentence.line, sentence.rank, item.site, layer, head, measures)
        for sentence in sentences
        for item in sentence.maps
        for measures in [measure(item)]
        for layer, head in np.ndindex(item.weights.shape[:2])
    ]


def of_choice(sentence: SentenceMaps, site: str, layer: int | None, head: int | None) -> Row:
    """The row of one map of a sentence; a mean over layers or heads is measured as one map."""
    measures = measure(narrowed(sentence.site(site), layer, head))
    return _row(sentence.line, sentence.rank, site, 0, 0, measures)._replace(layer=layer, head=head)


def per_head(rows: Sequence[Row]) -> list[Row]:
    """The means over the sentences, a row for each site, layer and head."""
    groups: dict[tuple[str, int | None, int | None], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.site, row.layer, row.head), []).append(row)
    found = []
    for place, group in groups.items():
        values = {name: float(np.mean([row.values[name] for row in group])) for name in Measures._fields}
        found.append(Row(0, 0, *place, values, _dead(values)))
    return found


def worst_first(rows: Sequence[Row], name: str) -> list[Row]:
    """The rows sorted by a measure, the worst one first. Raises ValueError for an unknown one."""
    if name not in Measures._fields:
        raise ValueError(f"Unknown measure '{name}'. There are: {', '.join(Measures._fields)}.")
    return sorted(rows, key=lambda row: row.values[name], reverse=name not in WORSE_IS_LESS)


def _row(line: int, rank: int, site: str, layer: int, head: int, measures: Measures) -> Row:
    values = {name: float(heads[layer, head]) for name, heads in measures._asdict().items()}
    return Row(line, rank, site, layer, head, values, _dead(values))


def _dead(values: Mapping[str, float]) -> str:
    if values["special"] >= SINK:
        return "sink"
    if values["uniformity"] >= UNIFORM:
        return "uniform"
    return "constant" if values["variation"] <= CONSTANT else ""


def _shares(
    weights: Float[np.ndarray, "layers heads rows columns"],
) -> tuple[Float[np.ndarray, "layers heads rows columns"], Bool[np.ndarray, "layers heads rows"]]:
    """The rows divided by their sums, and which of them have weight; the others stay 0."""
    exact = weights.astype(np.float64)
    sums = exact.sum(-1, keepdims=True)
    return np.divide(exact, sums, out=np.zeros_like(exact), where=sums > 0), sums[..., 0] > 0


def _entropies(shares: Float[np.ndarray, "layers heads rows columns"]) -> Float[np.ndarray, "layers heads rows"]:
    # abs, since minus 0 is shown with its sign.
    return np.abs((shares * np.log(np.where(shares > 0, shares, 1))).sum(-1))


def _visible(item: AttentionMap) -> Bool[np.ndarray, "*heads rows columns"]:
    """Which columns a row may see."""
    if item.local:
        return item.local.allowed
    every = np.ones(item.weights.shape[-2:], dtype=bool)
    return np.tril(every) if item.site == "decoder_self" else every


def _monotonicity(
    shares: Float[np.ndarray, "layers heads rows columns"], used: Bool[np.ndarray, "layers heads rows"]
) -> Heads:
    found = np.ones(shares.shape[:2])
    for head in np.ndindex(found.shape):
        steps = np.diff(shares[head].argmax(-1)[used[head]])
        if steps.size:
            found[head] = (steps >= 0).mean()
    return found


def _mean(values: np.ndarray, used: np.ndarray, axis: int = -1) -> np.ndarray:
    """The mean of those that are used, 0 where none is."""
    return np.where(used, values, 0).sum(axis) / np.maximum(used.sum(axis), 1)


def _is_punctuation(label: str) -> bool:
    text = label.removeprefix("\u2581")
    return bool(text) and all(unicodedata.category(letter).startswith("P") for letter in text)
