"""The alignment error rate of a run, measured on argmax links of its cross attention.

The attention comes from forced decoding of the references.
Attributions (nmt.insight.attribution_maps) are measured in the same way.
"""

import logging
from pathlib import Path
from typing import NamedTuple

import numpy as np

from nmt.config.direction import Direction
from nmt.data.corpus import Pairs, alignment_file, file_pair, read_pairs
from nmt.errors import Mistake
from nmt.insight.forced_maps import MakeMaps, first_ranked, forced_maps
from nmt.maps.links import (
    Alignment,
    MapSelector,
    Rates,
    best,
    check_links,
    diagonal_links,
    rates,
    rates_of_maps,
    read_alignments,
    selected_word_map,
)
from nmt.maps.symmetrization import LINKS, all_links
from nmt.maps.words import merge_pieces
from nmt.pace import Pace
from nmt.runs.load import LoadedRun
from nmt.text import normalize

logger = logging.getLogger(__name__)


class Gold(NamedTuple):
    """Normalized sentence pairs and the gold alignment of each."""

    pairs: Pairs
    alignments: list[Alignment]


class AlignmentQuality(NamedTuple):
    """How well the argmax links of the chosen row, layer and head agree with the gold alignments."""

    rates: Rates
    choice: MapSelector
    reason: str
    """How the choice was made."""
    diagonal: Rates
    """The rates of links along the diagonal, which depend only on the sentence lengths."""
    table: dict[MapSelector, Rates]
    """The rates for every choice."""
    valid_table: dict[MapSelector, Rates]
    """The rates for every choice on the validation split; empty if that split has no alignments."""

    @property
    def note(self) -> str:
        return f"({self.choice}; {self.reason}; the diagonal {self.diagonal.aer:.3f})"


class MapsWithGold(NamedTuple):
    """Cross-attention maps of sentence pairs with gold alignments. Pairs without a map are left out."""

    weights: list[np.ndarray]
    source_pieces: list[list[str]]
    target_pieces: list[list[str]]
    gold: list[Alignment]


def read_gold(path: Path, pairs: Pairs, direction: Direction) -> Gold:
    """Reads the alignments of pairs whose sources are normalized. Raises Mistake if they do not fit the pairs."""
    pairs = Pairs(pairs.source, [normalize(line) for line in pairs.target])
    alignments = read_alignments(path, flip=path.name.endswith(f".{direction.target}-{direction.source}.align"))
    check_links(path, alignments, pairs.source, pairs.target)
    return Gold(pairs, alignments)


def gold_file(run: LoadedRun, prefix: str) -> Path | None:
    """The path of the gold alignments next to one of the run's corpora, or None if it has none.

    Also None for a corpus that is detokenized, because alignments refer to the words in the file.
    """
    return None if run.settings.data.becomes_plain(prefix) else alignment_file(prefix, run.direction)


def read_valid_gold(run: LoadedRun) -> Gold | None:
    """A run's validation split with its alignments, or None if it has no alignments.

    Also None, with a warning, if the split itself is missing, as it is for the included models.
    """
    prefix = run.settings.data.valid
    absent = [path for path in file_pair(prefix, run.direction) if not path.is_file()]
    if absent:
        logger.warning(
            "%s does not exist. It belongs to the run's data.valid, on which the map for the alignment error rate is "
            "chosen; without it, the rate is that of the last layer's mean.",
            absent[0],
        )
        return None
    path = gold_file(run, prefix)
    return read_gold(path, read_pairs(prefix, run.direction), run.direction) if path else None


def alignment_error(run: LoadedRun, gold: Gold, valid: Gold | None, batch_tokens: int) -> AlignmentQuality:
    """AER, precision and recall against `gold`, for the row, layer and head with the lowest AER on `valid`.

    Without `valid`, it uses the row that predicts the piece, the last layer and the mean of its heads.
    """
    return alignment_quality(*cross_maps(run, gold, valid, batch_tokens))


def cross_maps(
    run: LoadedRun, gold: Gold, valid: Gold | None, batch_tokens: int, make_maps: MakeMaps = forced_maps
) -> tuple[MapsWithGold, MapsWithGold | None]:
    """The maps of the sentences and of the validation split, which are the same object if both sets are the same.

    The second is None if `valid` is None, or if none of its pairs has a map. `make_maps` makes the maps, either of
    attention or of an attribution. Raises Mistake if no pair of `gold` has a map.
    """
    maps = _maps(run, gold, batch_tokens, make_maps)
    if not maps.weights:
        raise Mistake(
            f"None of the {len(gold.alignments)} pairs with an alignment can be measured, because one side of each is "
            "empty or too long for the model: use pairs that fit."
        )
    if valid is None or valid == gold:
        return maps, valid and maps
    valid_maps = _maps(run, valid, batch_tokens, make_maps)
    return maps, valid_maps if valid_maps.weights else None


def alignment_quality(maps: MapsWithGold, valid: MapsWithGold | None) -> AlignmentQuality:
    """The rates for the row, layer and head that score best on the validation maps, if there are any."""
    rates_of, valid_rates_of = rates_of_maps(*maps), rates_of_maps(*valid) if valid else {}
    sides = zip(maps.source_pieces, maps.target_pieces, strict=True)
    diagonal = rates([diagonal_links(*(len(merge_pieces(side)) for side in pair)) for pair in sides], maps.gold)
    if valid_rates_of:
        selector = best(valid_rates_of)
        reason = "chosen on the validation split" + (", on the sentences measured here" if valid is maps else "")
    else:
        layers, heads = maps.weights[0].shape[:2]
        selector = MapSelector("predicts", layers - 1, None if heads > 1 else 0)
        reason = "not chosen: the validation split is missing or has no alignments that can be measured"
    return AlignmentQuality(rates_of[selector], selector, reason, diagonal, rates_of, valid_rates_of)


def rates_by_way(maps: MapsWithGold, selector: MapSelector, threshold: float) -> dict[str, Rates | None]:
    """The rates of each kind of link in the chosen map; None for a kind without links if no gold link is sure."""
    sentences = zip(maps.weights, maps.source_pieces, maps.target_pieces, strict=True)
    links = [all_links(selected_word_map(*sentence, selector), threshold) for sentence in sentences]
    sure = any(gold.sure for gold in maps.gold)
    by_way: dict[str, Rates | None] = {}
    for way in LINKS:
        predicted = [links_of_sentence[way] for links_of_sentence in links]
        by_way[way] = rates(predicted, maps.gold) if sure or any(predicted) else None
    return by_way


def _maps(run: LoadedRun, gold: Gold, batch_tokens: int, make_maps: MakeMaps) -> MapsWithGold:
    """The maps from forced decoding of the references. Logs a warning if some pairs have no map."""
    tokenizers = run.tokenizers
    ids = tokenizers.source.encode_all(gold.pairs.source), tokenizers.target.encode_all(gold.pairs.target)
    maps = Pace("maps made").over(make_maps(run, first_ranked(*ids), batch_tokens), len(gold.alignments))
    sentences = sorted(maps, key=lambda sentence: sentence.line)
    if len(sentences) < len(gold.alignments):
        logger.warning(
            "The alignment error rate leaves out %d of %d pairs, because one side is empty or too long for the model.",
            len(gold.alignments) - len(sentences),
            len(gold.alignments),
        )
    return MapsWithGold(
        [sentence.site("cross").weights for sentence in sentences],
        [sentence.source_pieces for sentence in sentences],
        [sentence.target_pieces for sentence in sentences],
        [gold.alignments[sentence.line - 1] for sentence in sentences],
    )
