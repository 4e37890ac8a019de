"""Word alignments: Pharaoh files, the alignment error rate, and links read off attention maps."""

import itertools
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from nmt.errors import Mistake
from nmt.maps.attention_map import selected
from nmt.maps.words import PIECE_ROWS, PieceRow, word_map
from nmt.text.lines import read_lines

Link = tuple[int, int]
"""(source word, target word), each from 0."""

_LINK = re.compile(r"(\d{1,9})([-?])(\d{1,9})", re.ASCII)


class Alignment(NamedTuple):
    """A human alignment of one sentence pair; every sure link is also possible."""

    sure: frozenset[Link]
    possible: frozenset[Link]


class MapSelector(NamedTuple):
    """The map that links are read from."""

    row: PieceRow
    """The row of a target piece: 'predicts' is the step that predicts it; 'reads' is the next step, which reads it.

    The latter is Shift-Att (Chen et al. 2020).
    """
    layer: int | None
    """None for the mean of the layers."""
    head: int | None
    """None for the mean of the heads."""

    def __str__(self) -> str:
        layer = "mean of layers" if self.layer is None else f"layer {self.layer}"
        head = "mean of heads" if self.head is None else f"head {self.head}"
        return f"row that {self.row}, {layer}, {head}"


class Rates(NamedTuple):
    """How well predicted links agree with gold links (Och & Ney 2003), from 0 to 1."""

    aer: float
    precision: float
    """Share of the predicted links that are possible; 1 if none is predicted."""
    recall: float
    """Share of the sure links that are predicted; 1 if there are none."""


def read_alignments(path: Path, *, flip: bool = False) -> list[Alignment]:
    """Reads a Pharaoh file: links 'i-j' (sure) and 'i?j' (possible) on each line, source word first, from 0.

    `flip` swaps source and target, for a file of the opposite direction. Raises Mistake if it does not exist,
    and for an invalid link, whose file and line it names.
    """
    return [_parse(line, flip, f"{path}, line {number}") for number, line in enumerate(read_lines(path), 1)]


def check_links(path: Path, alignments: Sequence[Alignment], sources: Sequence[str], targets: Sequence[str]) -> None:
    """Raises Mistake if `alignments`, read from `path`, do not fit the sentence pairs."""
    if not len(alignments) == len(sources) == len(targets):
        raise Mistake(
            f"{path} has {len(alignments)} lines, but there are {len(sources)} source and {len(targets)} target "
            "sentences: it must have one line for each sentence pair."
        )
    for number, (gold, source, target) in enumerate(zip(alignments, sources, targets, strict=True), 1):
        words = len(source.split()), len(target.split())
        for i, j in sorted(gold.sure | gold.possible):
            if i >= words[0] or j >= words[1]:
                raise Mistake(
                    f"{path}, line {number}: link {i}-{j} does not fit {words[0]} source and {words[1]} target words; "
                    "count words from 0 and write the source first (or name the file after the other direction)."
                )


def rates(predicted: Sequence[Collection[Link]], gold: Sequence[Alignment]) -> Rates:
    """Alignment error rate 1 - (|A n S| + |A n P|) / (|A| + |S|), precision |A n P| / |A| and recall |A n S| / |S|.

    A are the predicted, S the sure and P the possible links of the whole corpus. Raises Mistake if there is
    neither a predicted nor a sure link.
    """
    if len(predicted) != len(gold):
        raise ValueError(
            f"{len(predicted)} predicted but {len(gold)} gold alignments: every sentence pair needs one of each."
        )
    in_sure = in_possible = of_predicted = of_sure = 0
    for links, (sure, possible) in zip(map(frozenset, predicted), gold, strict=True):
        in_sure += len(links & sure)
        in_possible += len(links & possible)
        of_predicted += len(links)
        of_sure += len(sure)
    if of_predicted + of_sure == 0:
        raise Mistake("The alignment error rate is undefined: there are no predicted and no sure links.")
    return Rates(
        aer=1 - (in_sure + in_possible) / (of_predicted + of_sure),
        precision=in_possible / of_predicted if of_predicted else 1.0,
        recall=in_sure / of_sure if of_sure else 1.0,
    )


def argmax_links(weights: Float[np.ndarray, "target_words source_words"]) -> frozenset[Link]:
    """Links each target word to the source word with the largest weight (Luong et al. 2015, section 5.4).

    A target word without any weight on the source gets no link.
    """
    return frozenset((int(row.argmax()), j) for j, row in enumerate(weights) if row.max() > 0)


def threshold_links(weights: Float[np.ndarray, "target_words source_words"], least: float) -> frozenset[Link]:
    """A link wherever the weight is at least `least`. Raises Mistake unless 0 < least <= 1."""
    if not 0 < least <= 1:
        raise Mistake(f"The threshold is {least}; it must be above 0 and at most 1, such as 0.2.")
    return frozenset((int(i), int(j)) for j, i in zip(*np.nonzero(weights >= least), strict=True))


def diagonal_links(source_words: int, target_words: int) -> frozenset[Link]:
    """A baseline that uses lengths only: links each target word to the source word at the same relative position."""
    stretch = (source_words - 1) / max(1, target_words - 1)
    return frozenset((int(j * stretch + 0.5), j) for j in range(target_words))


def selected_word_map(
    weights: Float[np.ndarray, "layers heads rows columns"],
    source_pieces: Sequence[str],
    target_pieces: Sequence[str],
    choice: MapSelector,
) -> Float[np.ndarray, "target_words source_words"]:
    """The word map (see `word_map`) that `choice` selects from one sentence pair's cross attention."""
    return word_map(selected(weights, choice.layer, choice.head), source_pieces, target_pieces, row=choice.row)


def rates_of_maps(
    weights: Sequence[Float[np.ndarray, "layers heads _ _"]],
    source_pieces: Sequence[Sequence[str]],
    target_pieces: Sequence[Sequence[str]],
    gold: Sequence[Alignment],
) -> dict[MapSelector, Rates]:
    """The rates of the argmax links for every choice: each row for each head, each layer's mean and the overall mean.

    Each argument contains one item for each sentence pair. Raises Mistake if there are no maps.
    """
    if not weights:
        raise Mistake(
            "There are no attention maps to choose from: use at least one sentence pair with a gold alignment."
        )
    layers, heads = weights[0].shape[:2]
    # With a single layer or head, its mean would be the same map again. `best` relies on the order.
    of_heads = [None, *range(heads)] if heads > 1 else [0]
    of_all: list[tuple[int | None, int | None]] = [(None, None)] if layers > 1 else []
    layers_and_heads = [*of_all, *itertools.product(range(layers), of_heads)]
    rates_of = {}
    for row in PIECE_ROWS:
        maps = [word_map(*pair, row=row) for pair in zip(weights, source_pieces, target_pieces, strict=True)]
        for layer, head in layers_and_heads:
            predicted = [argmax_links(selected(sentence, layer, head)) for sentence in maps]
            rates_of[MapSelector(row, layer, head)] = rates(predicted, gold)
    return rates_of


def best(choices: Mapping[MapSelector, Rates]) -> MapSelector:
    """The choice with the lowest error rate; on a tie, the first one.

    `rates_of_maps` lists `predicts` before `reads`, the mean of all before the layers, and a layer's mean before its
    heads.
    """
    return min(choices, key=lambda choice: choices[choice].aer)


def _parse(line: str, flip: bool, where: str) -> Alignment:
    sure, possible = set(), set()
    for token in line.split():
        match = _LINK.fullmatch(token)
        if match is None:
            raise Mistake(f"{where}: '{token:.40}' is not a link; write i-j (sure) or i?j (possible), counted from 0.")
        i, kind, j = int(match[1]), match[2], int(match[3])
        link = (j, i) if flip else (i, j)
        possible.add(link)
        if kind == "-":
            sure.add(link)
    return Alignment(frozenset(sure), frozenset(possible))
