"""Diagnostics without gold alignments: how sharp, monotonic and complete maps are, and which heads are dead."""

import math
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from nmt.config.messages import unknown
from nmt.errors import Mistake
from nmt.maps.attention_map import BOS, EOS, AttentionMap, LocalWindow, SentenceMaps, selected
from nmt.text.normalize import WORD_START

Heads = Float[np.ndarray, "layers heads"]

UNIFORM, SINK, CONSTANT = 0.99, 0.95, 0.02
"""A head is dead if its uniformity is at least UNIFORM, its weight on BOS and EOS is at least SINK, or its variation is
at most CONSTANT.
"""


class Measures(NamedTuple):
    """Measures of each head over a sentence's rows.

    Each row is first divided by its sum; rows without weight are skipped.
    """

    entropy: Heads
    """Mean of -sum_s a_s ln a_s, in nats: 0 if all weight is on one column."""
    uniformity: Heads
    """Mean of the entropy divided by the entropy of equal weights on all columns that the row may see.

    NaN if no row sees two columns, as in an LSTMN that reads two pieces.
    """
    distance: Heads
    """Mean of sum_s a_s |s / (columns - 1) - t / (rows - 1)|: how far the weight is from the diagonal."""
    monotonicity: Heads
    """Share of the steps at which the position of the largest weight does not move backward."""
    coverage: Heads
    """Mean over the columns, without BOS and EOS, of min(sum of the column's weights, 1)."""
    special: Heads
    """Mean weight on BOS and EOS."""
    punctuation: Heads
    """Mean weight on punctuation pieces."""
    variation: Heads
    """Mean total variation distance of a row from the mean row: 0 if the weights do not depend on the query.

    NaN if no row sees two columns, because the weights then depend on nothing, as in a map of a single column.
    """


WORSE_IS_LESS = {"monotonicity", "coverage", "variation"}
"""The measures for which small values are bad. For the others, large values are bad."""


class HeadDiagnostics(NamedTuple):
    """The measures of one head, in one sentence or averaged over sentences."""

    line: int
    """The line number of the sentence, from 1; 0 for the mean over sentences."""
    rank: int
    site: str
    layer: int | None
    """None for the mean of the layers."""
    head: int | None
    """None for the mean of the heads."""
    values: dict[str, float]
    """The value of each measure, by its name in `Measures`."""

    @property
    def dead(self) -> str:
        """Why the head is dead: 'sink' (nearly all weight on BOS and EOS), 'uniform' or 'constant'; '' if it is not."""
        if self.values["special"] >= SINK:
            return "sink"
        if self.values["uniformity"] >= UNIFORM:
            return "uniform"
        return "constant" if self.values["variation"] <= CONSTANT else ""


def measure(item: AttentionMap) -> Measures:
    """The measures of every layer and head of a map."""
    shares, used = _shares(item.weights)
    rows, columns = shares.shape[-2:]
    entropies = _entropies(shares)
    widest = np.log(np.broadcast_to(item.visible.sum(-1), used.shape).clip(min=1))
    # A row that sees only one column has no entropy to compare with, such as the first one of a causal site.
    compared = used & (widest > 0)
    relative = _mean(np.divide(entropies, widest, out=np.ones_like(entropies), where=widest > 0), compared)
    off_diagonal = np.arange(columns) / max(1, columns - 1) - np.arange(rows)[:, None] / max(1, rows - 1)
    special = np.array([label in (BOS, EOS) for label in item.columns])
    punctuation = np.array([_is_punctuation(label) for label in item.columns])
    mean_row = _mean(shares, used[..., None], axis=-2)
    monotonicity = np.ones(shares.shape[:2])
    for head in np.ndindex(monotonicity.shape):
        steps = np.diff(shares[head].argmax(-1)[used[head]])
        if steps.size:
            monotonicity[head] = (steps >= 0).mean()
    return Measures(
        entropy=_mean(entropies, used),
        uniformity=np.where(compared.any(-1), relative, np.nan),
        distance=_mean((shares * np.abs(off_diagonal)).sum(-1), used),
        monotonicity=monotonicity,
        coverage=np.ones(used.shape[:2]) if special.all() else np.minimum(shares.sum(-2), 1)[..., ~special].mean(-1),
        special=_mean(shares[..., special].sum(-1), used),
        punctuation=_mean(shares[..., punctuation].sum(-1), used),
        variation=np.where(compared.any(-1), _mean(np.abs(shares - mean_row[..., None, :]).sum(-1) / 2, used), np.nan),
    )


def head_entropies(weights: Float[np.ndarray, "layers heads rows columns"]) -> Heads:
    """The entropy of `Measures` alone; NaN for a head without any weight."""
    shares, used = _shares(weights)
    return np.where(used.any(-1), _mean(_entropies(shares), used), np.nan)


def per_sentence(sentences: Iterable[SentenceMaps]) -> list[HeadDiagnostics]:
    """The diagnostics of each sentence, site, layer and head."""
    return [
        HeadDiagnostics(
            line=sentence.line,
            rank=sentence.rank,
            site=item.site,
            layer=layer,
            head=head,
            values=_values(measures, layer, head),
        )
        for sentence in sentences
        for item in sentence.maps
        for measures in [measure(item)]
        for layer, head in np.ndindex(item.weights.shape[:2])
    ]


def of_one_map(sentence: SentenceMaps, item: AttentionMap, layer: int | None, head: int | None) -> HeadDiagnostics:
    """The diagnostics of one of a sentence's maps; a mean over layers or heads is measured as one map."""
    local = None
    if item.local:
        center = selected(item.local.center, layer, head)
        allowed = selected(item.local.allowed.astype(np.float64), layer, head) > 0
        local = LocalWindow(center[None, None], allowed[None, None], prior=None)  # the measures do not read the prior
    weights = selected(item.weights, layer, head)[None, None]
    measures = measure(replace(item, weights=weights, local=local, attribution=None))
    return HeadDiagnostics(
        line=sentence.line,
        rank=sentence.rank,
        site=item.site,
        layer=layer,
        head=head,
        values=_values(measures, layer=0, head=0),
    )


def per_head(diagnostics: Sequence[HeadDiagnostics]) -> list[HeadDiagnostics]:
    """The means over the sentences, for each site, layer and head; a measure that is NaN in one does not count."""
    groups: dict[tuple[str, int | None, int | None], list[HeadDiagnostics]] = {}
    for row in diagnostics:
        groups.setdefault((row.site, row.layer, row.head), []).append(row)
    return [
        HeadDiagnostics(
            line=0,
            rank=0,
            site=site,
            layer=layer,
            head=head,
            values={name: _mean_of_known(row.values[name] for row in group) for name in Measures._fields},
        )
        for (site, layer, head), group in groups.items()
    ]


def worst_first(diagnostics: Sequence[HeadDiagnostics], name: str) -> list[HeadDiagnostics]:
    """Sorts diagnostics by a measure, worst first and NaN last. Raises Mistake for an unknown measure."""
    if name not in Measures._fields:
        raise Mistake(unknown("measure", name, Measures._fields))
    sign = 1 if name in WORSE_IS_LESS else -1
    return sorted(diagnostics, key=lambda row: (math.isnan(row.values[name]), sign * row.values[name]))


def _mean_of_known(values: Iterable[float]) -> float:
    """The mean of the values that are not NaN; NaN if there are none."""
    known = [value for value in values if not math.isnan(value)]
    return float(np.mean(known)) if known else math.nan


def _values(measures: Measures, layer: int, head: int) -> dict[str, float]:
    return {name: float(heads[layer, head]) for name, heads in measures._asdict().items()}


def _shares(
    weights: Float[np.ndarray, "layers heads rows columns"],
) -> tuple[Float[np.ndarray, "layers heads rows columns"], Bool[np.ndarray, "layers heads rows"]]:
    """The rows divided by their sums, and which of them have any weight; the others stay 0."""
    exact = weights.astype(np.float64)
    sums = exact.sum(-1, keepdims=True)
    return np.divide(exact, sums, out=np.zeros_like(exact), where=sums > 0), sums[..., 0] > 0


def _entropies(shares: Float[np.ndarray, "layers heads rows columns"]) -> Float[np.ndarray, "layers heads rows"]:
    # abs turns -0.0, which would be printed with its sign, into 0.0.
    return np.abs((shares * np.log(np.where(shares > 0, shares, 1))).sum(-1))


def _mean(values: np.ndarray, used: np.ndarray, axis: int = -1) -> np.ndarray:
    """The mean of the used values, 0 if there are none."""
    return np.where(used, values, 0).sum(axis) / np.maximum(used.sum(axis), 1)


def _is_punctuation(label: str) -> bool:
    text = label.removeprefix(WORD_START)
    return bool(text) and all(unicodedata.category(letter).startswith("P") for letter in text)
