"""Sentences of the embedded corpus with known word alignments, and how well a run's attention agrees with them."""

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from nmt.config.direction import Direction
from nmt.data.corpus import alignment_file, corpus_files
from nmt.errors import Mistake, TemplatedMessage
from nmt.insight.sentence_pair import check_index, decoded_pair
from nmt.maps.links import (
    Alignment,
    Link,
    MapSelector,
    Rates,
    argmax_links,
    diagonal_links,
    rates,
    read_alignments,
    selected_word_map,
)
from nmt.maps.words import word_map
from nmt.runs.load import LoadedRun
from nmt.text import normalize
from nmt.text.lines import iter_lines

_CORPUS = "sample:test"
_LANGUAGES = {"en", "vi"}
_NUMBER, _MOST_WORDS = 12, 11


class AlignedPair(NamedTuple):
    """A sentence, its translation, and the alignment of their space-separated words."""

    source: str
    target: str
    gold: Alignment


class Agreement(NamedTuple):
    """The links of one sentence pair according to the grammar, a run's attention, the diagonal and a user."""

    source_words: list[str]
    target_words: list[str]
    weights: Float[np.ndarray, "target_words source_words"]
    """The run's cross attention between words, from forced decoding of the target."""
    gold: Alignment
    links: dict[str, frozenset[Link]]
    """'model' links each target word to the source word with the largest weight, 'diagonal' depends only on the
    lengths, and 'guess' contains the user's links, if there are any.
    """
    rates: dict[str, Rates]
    """How well each entry of `links` agrees with `gold`."""
    error_rates: list[list[float]]
    """The alignment error rate of each layer and head by itself, with its links chosen like those of 'model'."""


@cache
def aligned_pairs(direction: Direction) -> tuple[AlignedPair, ...]:
    """The first short pairs of the embedded test split; none for languages other than English and Vietnamese."""
    if {direction.source, direction.target} != _LANGUAGES:
        return ()
    path = alignment_file(_CORPUS, direction)
    if path is None:
        raise Mistake(f"The embedded corpus has no alignments for {direction}; reinstall nmt-attention.")
    gold = read_alignments(path, flip=path.name.endswith(f".{direction.target}-{direction.source}.align"))
    texts = [[normalize(line) for line in iter_lines(file)] for file in corpus_files(_CORPUS, direction)]
    pairs = map(AlignedPair, *texts, gold)
    short = (pair for pair in pairs if max(len(pair.source.split()), len(pair.target.split())) <= _MOST_WORDS)
    return tuple(pair for pair, _ in zip(short, range(_NUMBER), strict=False))


def agreement(run: LoadedRun, pair: AlignedPair, choice: MapSelector, guess: Sequence[Link] = ()) -> Agreement:
    """How well the map that `choice` selects, and a guess, agree with the known alignment of a pair.

    Raises Mistake for a layer or head that the run does not have, and for a link outside of the pair.
    """
    source_words, target_words = pair.source.split(), pair.target.split()
    for i, j in guess:
        if not (0 <= i < len(source_words) and 0 <= j < len(target_words)):
            raise Mistake(
                TemplatedMessage(
                    "The link {i}-{j} does not fit {source} source and {target} target words; count words from 0 and "
                    "write the source word first.",
                    i=i,
                    j=j,
                    source=len(source_words),
                    target=len(target_words),
                )
            )
    tokenizers = run.tokenizers
    source, target = tokenizers.source.encode(pair.source), tokenizers.target.encode(pair.target)
    cross = next(item for item in decoded_pair(run, source, target).maps if item.site == "cross")
    pieces = tokenizers.source.pieces(source), tokenizers.target.pieces(target)
    layers, heads = cross.weights.shape[:2]
    check_index("layer", choice.layer, layers, "cross")
    check_index("head", choice.head, heads, "cross")
    weights = selected_word_map(cross.weights, *pieces, choice)
    links = {
        "model": argmax_links(weights),
        "diagonal": diagonal_links(len(source_words), len(target_words)),
        **({"guess": frozenset(guess)} if guess else {}),
    }
    agreement_of = {name: rates([predicted], [pair.gold]) for name, predicted in links.items()}
    every = word_map(cross.weights, *pieces, choice.row)
    error_rates = [[rates([argmax_links(head)], [pair.gold]).aer for head in layer] for layer in every]
    return Agreement(source_words, target_words, weights, pair.gold, links, agreement_of, error_rates)
